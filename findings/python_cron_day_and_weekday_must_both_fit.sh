#!/usr/bin/env bash
# APScheduler 3.11.3 and Huey 3.5.4 (for Python): with a day of the month and a weekday a job runs only when both fit.
# cron, which they follow, runs it when one of them fits, and so does croniter 7.0.0.
#
# Guess: CronTrigger.from_crontab("0 0 1 * mon") reads "a standard crontab expression", and Huey's crontab(day="1",
# day_of_week="1") is alike: the first of the month, and each Monday.
# Seen: in March 2026, whose first is a Sunday, croniter has 1, 2, 9, 16, 23 and 30. The other two have no day.
#
# Who it hurts: whoever moves a crontab to them. A job of "the first, and each Monday" runs once or twice a year from
# then on, and nothing fails.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
  APScheduler==3.11.3 huey==3.5.4 croniter==7.0.0
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime, timedelta, timezone
from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from huey import crontab

days = [datetime(2026, 3, day, tzinfo=timezone.utc) for day in range(1, 32)]
trigger = CronTrigger.from_crontab("0 0 1 * mon", timezone="UTC")
huey = crontab(minute="0", hour="0", day="1", day_of_week="1")
print("croniter", *(day.day for day in days if croniter.match("0 0 1 * mon", day)), end="; ")
print("APScheduler", *(day.day for day in days if trigger.get_next_fire_time(None, day) == day), end="; ")
print("Huey", *(day.day for day in days if huey(day.replace(tzinfo=None))))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "days of March 2026: $seen"
[ "$seen" = "croniter 1 2 9 16 23 30; APScheduler; Huey" ]
