#!/usr/bin/env bash
# Taskwarrior 2.6.2 (of Debian 12, task lists): what is due monthly from 31 January is due on 28 February, and from then
# on on the 28th of each month. What is due yearly from 29 February stays on the 28th.
#
# Guess: 31 January, 28 February, 31 March, 30 April and so on; yearly 28 February 2025 to 2027 and 29 February 2028.
# Seen: each date is made from the one before, and what a short month took away does not come back. Quarterly from 31
# May is the 28th after the next February. The recurring task itself keeps the 31st as its due date.
#
# Who it hurts: rents, closings and reports of a month's end: after the first February all are three days early.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 taskwarrior=2.6.2+dfsg-1 2> /dev/null
dpkg-deb --extract taskwarrior_*.deb package
for recurring in "monthly 2025-01-31" "yearly 2024-02-29" "quarterly 2024-05-31"; do
  read -r period due <<< "$recurring"
  printf 'data.location=%s\nverbose=nothing\nrecurrence.limit=12\n' "$work/$period" > taskrc
  task() { TZ=UTC HOME=$work TASKRC=$work/taskrc package/usr/bin/task "$@"; }
  task add Report due:"$due" recur:"$period"
  task list > /dev/null  # makes the tasks of the past and of the future
  task status:pending export | grep --only-matching '"due":"[0-9]*' | tail --bytes=+1 | cut --characters=8-15 | sort |
    head -6 | paste -s -d " "
done > seen
seen=$(paste -s -d , seen)
echo "Taskwarrior 2.6.2, monthly from 31 January, yearly from 29 February and quarterly from 31 May: $seen"
[ "$seen" = "20250131 20250228 20250328 20250428 20250528 20250628,\
20240229 20250228 20260228 20270228 20280228 20290228,20240531 20240831 20241130 20250228 20250528 20250828" ]
