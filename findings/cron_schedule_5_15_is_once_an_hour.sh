#!/usr/bin/env bash
# cron-schedule 6.0.0 (for JavaScript): a step after a single number is ignored. "5/15 * * * *" is once an hour.
#
# Guess: at :05, :20, :35 and :50, as in cron-parser 5.10.6, or an error.
# Seen: at :05 only. "0 8/2 * * *", every two hours from eight on, is once a day. 5-59/15 and 8-23/2 are right.
#
# Who it hurts: whoever brings expressions from Quartz, where this is how to say it, or from cron-parser: three of four
# runs do not come, and nothing fails.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" cron-schedule@6.0.0 cron-parser@5.10.6
cat > "$work/seen.mjs" << 'PROGRAM'
import { CronExpressionParser } from "cron-parser";
import { parseCronExpression } from "cron-schedule";

const start = new Date("2026-11-02T00:00:00Z");
const times = (dates) => dates.map((date) => date.toISOString().slice(11, 16)).join(" ");
const seen = ["5/15 * * * *", "0 8/2 * * *", "5-59/15 * * * *"].map((expression) => {
  const parsed = CronExpressionParser.parse(expression, { currentDate: start, tz: "UTC" });
  return times(parseCronExpression(expression).getNextDates(3, start)) + ", " +
    times([1, 2, 3].map(() => parsed.next().toDate()));
});
console.log(seen.join("; "));
PROGRAM
seen=$(TZ=UTC node "$work/seen.mjs")
echo "cron-schedule 6.0.0 and cron-parser 5.10.6: $seen"
[ "$seen" = "00:05 01:05 02:05, 00:05 00:20 00:35; 08:00 08:00 08:00, 08:00 10:00 12:00; \
00:05 00:20 00:35, 00:05 00:20 00:35" ]
