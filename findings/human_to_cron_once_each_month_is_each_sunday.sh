#!/usr/bin/env bash
# human-to-cron 0.3.1 (cron expressions from words, for JavaScript): "once each month" is each Sunday, and "once each 2
# days" is both Saturday and Sunday.
#
# Guess: a run a month, as the words say. The README has 0 0 0 0 */1 * for it, and for "once each day" */1 as the day of
# the month.
# Seen: 0 0 0 * */1 0, which croner 11.0.1 runs on 4, 11 and 18 January. "once each 5 months" runs on all Sundays of
# January, too. "once each 2 days" runs on Saturday 3 and on Sunday 4. "once each hour" is right.
#
# Who it hurts: a monthly bill or report that is sent each week: the expression is well formed, and comes from the
# README's own words.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" human-to-cron@0.3.1 croner@11.0.1
cat > "$work/seen.cjs" << 'PROGRAM'
const { Cron } = require("croner");
const toCron = require("human-to-cron");

const seen = ["once each month", "once each 5 months", "once each 2 days", "once each hour"].map((text) => {
  const runs = new Cron(toCron(text), { timezone: "UTC" }).nextRuns(3, new Date("2026-01-01T00:00:00Z"));
  return `${toCron(text)}: ${runs.map((run) => run.toISOString().slice(5, 13)).join(" ")}`;
});
console.log(seen.join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "human-to-cron 0.3.1, a month, 5 months, 2 days and an hour: $seen"
[ "$seen" = "0 0 0 * */1 0: 01-04T00 01-11T00 01-18T00; 0 0 0 * */5 0: 01-04T00 01-11T00 01-18T00; \
0 0 0 * * */2: 01-03T00 01-04T00 01-06T00; 0 0 */1 * * *: 01-01T01 01-01T02 01-01T03" ]
