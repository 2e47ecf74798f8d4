#!/usr/bin/env bash
# @cheap-glitch/mi-cron 1.0.1 (for JavaScript): a day that a month lacks comes on a day of the next month. The 31st of
# April is 1 May.
#
# Guess: after 1 April 2026, "0 0 31 * *" comes on 31 May, and after 1 February "0 0 30 * *" on 30 March.
# Seen: on 1 May and 2 March. "0 0 29 2 *" comes on 1 March 2026, where the next is 29 February 2028.
#
# Who it hurts: whoever runs a job at the end of the month: it runs on days that the expression does not name, and on 31
# May once more.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @cheap-glitch/mi-cron@1.0.1 cron-parser@5.10.6
cat > "$work/seen.cjs" << 'PROGRAM'
const { parseCron } = require("@cheap-glitch/mi-cron");
const { CronExpressionParser } = require("cron-parser");

for (const [cron, from] of [["0 0 31 * *", "2026-04-01"], ["0 0 30 * *", "2026-02-01"], ["0 0 29 2 *", "2026-02-01"]]) {
  const other = CronExpressionParser.parse(cron, { currentDate: from, tz: "UTC" });
  const times = [parseCron.nextDate(cron, new Date(from)), other.next()];
  process.stdout.write(times.map((time) => time.toISOString().slice(0, 10)).join(" ") + "; ");
}
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "mi-cron 1.0.1 and cron-parser 5.10.6: $seen"
[ "$seen" = "2026-05-01 2026-05-31; 2026-03-02 2026-03-30; 2026-03-01 2028-02-29; " ]
