#!/usr/bin/env bash
# @breejs/later 4.2.0 (which Bree uses) reads the weekday 7 of a cron expression as Saturday.
#
# Guess: 7 is Sunday, as in cron and in cron-parser 5.10.6.
# Seen: the next days of "0 0 * * 7" from Sunday, 1 March 2026 on are the Saturdays 7, 14 and 21. 5-7 is Friday and
# Saturday. 0 is Sunday. Nothing is refused.
#
# Who it hurts: whoever moves a crontab to Bree. The job of Sunday night runs on Saturday: before the week that it
# closes has ended.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @breejs/later@4.2.0 cron-parser@5.10.6
cat > "$work/seen.mjs" << 'PROGRAM'
import later from "@breejs/later";
import { CronExpressionParser } from "cron-parser";

const start = new Date("2026-02-28T12:00:00Z");
const days = (dates) => dates.map((date) => date.getUTCDate()).join(" ");
const seen = ["7", "5-7", "0"].map((weekday) => {
  const expression = `0 0 * * ${weekday}`;
  const parsed = CronExpressionParser.parse(expression, { currentDate: start, tz: "UTC" });
  return days(later.schedule(later.parse.cron(expression)).next(3, start)) + ", " +
    days([1, 2, 3].map(() => parsed.next().toDate()));
});
console.log(seen.join("; "));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "later 4.2.0 and cron-parser 5.10.6, weekday 7, 5-7 and 0: $seen"
[ "$seen" = "7 14 21, 1 8 15; 6 7 13, 1 6 7; 1 8 15, 1 8 15" ]
