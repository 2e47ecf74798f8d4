#!/usr/bin/env bash
# local-crontab 0.1.8 (turns a crontab of a zone into those of UTC, for JavaScript): in zones that are half an hour off,
# the minutes from 30 on come an hour too early. 09:30 in India is 03:00, instead of 04:00.
#
# Guess: 9:00, 9:15, 9:30 and 9:45 of Asia/Kolkata, which is 5:30 ahead, are 3:30, 3:45, 4:00 and 4:15 of UTC.
# Seen: 3:30, 3:45, 3:00 and 3:15. The minutes are taken away without the hour that they complete; 9:30 of
# Australia/Adelaide in June is 23:00 instead of 0:00.
#
# Who it hurts: whoever plans jobs of local time on a scheduler of UTC: the morning's run starts an hour before the
# files of the night are there, and a run at 9:30 comes before that of 9:00.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" local-crontab@0.1.8
cat > "$work/seen.cjs" << 'PROGRAM'
const { localCrontabToUtcCrontabs } = require("local-crontab");

const of = (minute, zone) => localCrontabToUtcCrontabs(`${minute} 9 * 6 *`, zone).join();
const india = [0, 15, 30, 45].map((minute) => of(minute, "Asia/Kolkata"));
console.log([...india, of(30, "Australia/Adelaide")].join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "local-crontab 0.1.8, 9:00, 9:15, 9:30 and 9:45 of Kolkata, and 9:30 of Adelaide in June: $seen"
[ "$seen" = "30 3 * 6 *; 45 3 * 6 *; 0 3 * 6 *; 15 3 * 6 *; 0 23 * 6 *" ]
