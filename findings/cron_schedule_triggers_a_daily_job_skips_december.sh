#!/usr/bin/env bash
# cron-schedule-triggers 0.0.11 (times of Quartz for Python): "0 0 12 * * ? *", each day at noon, comes on 30 November
# and then on 31 December.
#
# Guess: 29 and 30 November, 1, 2 and 3 December.
# Seen: 29 and 30 November, 31 December and 1 January. After April it goes on at 31 May, and after a month of 31 days
# at the first. After 28 February comes 29 March. With 1/10, which is the 1st, 11th, 21st and 31st, December has the
# 31st only. A list, as 1,11,21, is right.
#
# Who it hurts: plans and forecasts of what runs when: December, May, July and October have one day, March has three,
# and no error says so.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check cron-schedule-triggers==0.0.11
cat > "$work/seen.py" << 'PYTHON'
from cstriggers.core.trigger import QuartzCron

for schedule, start in (("* *", "2026-11-29"), ("* *", "2026-04-29"), ("* *", "2026-10-30"), ("1/10 *", "2026-11-29"),
                        ("1,11,21 *", "2026-11-29")):
    triggers = QuartzCron(schedule_string=f"0 0 12 {schedule} ? *", start_date=f"{start}T00:00:00")
    print(*(time[5:10] for time in triggers.next_triggers(number_of_triggers=4, isoformat=True)), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "cron-schedule-triggers 0.0.11, daily from November, April and October, 1/10, and a list: $seen"
[ "$seen" = "11-29 11-30 12-31 01-01; 04-29 04-30 05-31 06-01; 10-30 10-31 11-01 11-02; 11-29 12-31 01-01 01-11; \
11-29 12-01 12-11 12-21; " ]
