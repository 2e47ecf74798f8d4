#!/usr/bin/env bash
# cron-schedule-parser 2.1.12 (a fork of cron-parser): "0 0 31 * *" comes in each month, on 30 November and on 28
# February too. "0 0 29 2 *" comes each year.
#
# Guess: 31 December, 31 January, 31 March and 31 May, as in any crontab and in cron-parser; and 29 February of 2028 and
# 2032. L is there for the last day of a month.
# Seen: a day that the month has not is its last day. "0 0 28,29 2 *" comes once in most years, and "0 0 31 4 *" is an
# error, but "0 0 31 2,4 *" comes on 30 April.
#
# Who it hurts: whoever moves his crontab to it: jobs for the 29th, 30th and 31st run in months in which they did not,
# on the day on which the jobs for the end of the month run.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" cron-schedule-parser@2.1.12
cat > "$work/seen.cjs" << 'PROGRAM'
const { parseExpression } = require("cron-schedule-parser");

const seen = ["0 0 31 * *", "0 0 29 2 *", "0 0 31 2,4 *", "0 0 31 4 *"].map((expression) => {
  try {
    const runs = parseExpression(expression, { currentDate: new Date("2026-11-27T00:00:00Z"), tz: "UTC" });
    return [1, 2, 3, 4].map(() => runs.next().toISOString().slice(0, 10)).join(" ");
  } catch (error) {
    return "error";
  }
});
console.log(seen.join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "cron-schedule-parser 2.1.12, the 31st, 29 February, 31 February and April, and 31 April: $seen"
[ "$seen" = "2026-11-30 2026-12-31 2027-01-31 2027-02-28, 2027-02-28 2028-02-29 2029-02-28 2030-02-28, \
2027-02-28 2027-04-30 2028-02-29 2028-04-30, error" ]
