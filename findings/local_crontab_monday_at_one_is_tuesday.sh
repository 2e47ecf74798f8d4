#!/usr/bin/env bash
# local-crontab 0.1.8 (turns a crontab of a zone into those of UTC, for JavaScript): hours move over midnight, but the
# weekday and the day of the month stay. Monday at 01:00 in Tokyo runs on Tuesday at 01:00.
#
# Guess: 16:00 of Sunday, or an error where the days cannot be told. The first of a month at 1:00 is the hour 16 of the
# days 28 to 31, as far as a crontab can say that.
# Seen: 16:00 of Monday, and 16:00 of the first. Weekdays at 18:00 of New York are the hour 23 of Monday to Friday,
# which is right; an hour or two later they are the hours 0 and 1 of Monday to Friday: Friday has no run, and Sunday has
# one.
#
# Who it hurts: whoever plans jobs of local time on a scheduler of UTC. The weekly or monthly run comes a day late, and
# the one of working days misses the evening of Friday.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" local-crontab@0.1.8
cat > "$work/seen.cjs" << 'PROGRAM'
const { localCrontabToUtcCrontabs } = require("local-crontab");

console.log([["0 1 * * 1", "Asia/Tokyo"], ["0 1 1 * *", "Asia/Tokyo"], ["0 18 * 1 1-5", "America/New_York"],
  ["0 20 * 1 1-5", "America/New_York"]].map((local) => localCrontabToUtcCrontabs(...local).join()).join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "local-crontab 0.1.8, Monday and the first at 1:00 of Tokyo, weekdays at 18:00 and 20:00 of New York: $seen"
[ "$seen" = "0 16 * * 1; 0 16 1 * *; 0 23 * 1 1-5; 0 1 * 1 1-5" ]
