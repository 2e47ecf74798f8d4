#!/usr/bin/env bash
# @cheap-glitch/mi-cron 1.0.1 (for JavaScript): the name of a month is the month before. feb is January, and jan is
# December of the year before.
#
# Guess: after 5 March 2026, "0 0 1 feb *" comes on 1 February 2027, as "0 0 1 2 *" does.
# Seen: on 1 January 2027. jan,feb,dec are the months 0, 1 and 11, and jan alone comes on 1 December. The names of the
# days are right. A name in capitals is no valid expression.
#
# Who it hurts: whoever bills or closes books by the year: the job runs a month early each time, and there is no error.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @cheap-glitch/mi-cron@1.0.1
cat > "$work/seen.cjs" << 'PROGRAM'
const { parseCron } = require("@cheap-glitch/mi-cron");

const march = new Date("2026-03-05T00:00:00Z");
const next = (cron) => parseCron.nextDate(cron, march).toISOString().slice(0, 10);
const dates = ["0 0 1 feb *", "0 0 1 2 *", "0 0 1 jan *", "0 0 1 1 *"].map(next);
console.log(...dates, ...parseCron("0 0 1 jan,feb,dec *").months);
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "mi-cron 1.0.1, the first of feb, 2, jan and 1 after 5 March 2026, and the months of jan,feb,dec: $seen"
[ "$seen" = "2027-01-01 2027-02-01 2026-12-01 2027-01-01 0 1 11" ]
