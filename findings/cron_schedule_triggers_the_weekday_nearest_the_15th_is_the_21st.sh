#!/usr/bin/env bash
# cron-schedule-triggers 0.0.11 (times of Quartz for Python): 15W, the weekday nearest the 15th, is the 21st in December
# 2026, and 5W is the 7th.
#
# Guess: Tuesday 15 December and Friday 15 January: in Quartz W is the day itself if it is from Monday to Friday.
# Seen: 21 December, 21 January, 19 February and 19 March. 5W is 7 December, and 20W 28 December. It looks as if it
# counted working days: the 15th working day of December is the 21st.
#
# Who it hurts: salaries and direct debits "on the 15th or the nearest weekday": the plan has them up to eight days
# late.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check cron-schedule-triggers==0.0.11
cat > "$work/seen.py" << 'PYTHON'
from cstriggers.core.trigger import QuartzCron

for day in (15, 5, 20):
    triggers = QuartzCron(schedule_string=f"0 0 0 {day}W * ? *", start_date="2026-11-29T00:00:00")
    print(*(time[5:10] for time in triggers.next_triggers(number_of_triggers=4, isoformat=True)), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "cron-schedule-triggers 0.0.11, 15W, 5W and 20W, months and days: $seen"
[ "$seen" = "12-21 01-21 02-19 03-19; 12-07 01-07 02-05 03-05; 12-28 01-28 02-26 03-26; " ]
