#!/usr/bin/env bash
# croniter 7.0.0 (for Python): "30 2 * * *" comes twice on the day on which summer time ends, when the clock shows 02:30
# twice. cronsim 2.8, as Debian's cron, has it once.
#
# Guess: a job of one time of the day runs once on each day; in the spring, when 02:30 is not there, croniter moves it
# to 03:00.
# Seen: from 2026-10-24 on in Europe/Berlin croniter has 24 Oct. 00:30 UTC, 25 Oct. 00:30 and 01:30, and 26 Oct. 01:30;
# cronsim has no 01:30 on the 25th.
#
# Who it hurts: the nightly run that bills, pays or sends, of a scheduler that is built on croniter. Once a year it runs
# twice, an hour apart.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check croniter==7.0.0 cronsim==2.8 tzdata
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime, timezone
from zoneinfo import ZoneInfo
from croniter import croniter
from cronsim import CronSim

start = datetime(2026, 10, 24, tzinfo=ZoneInfo("Europe/Berlin"))
for times in (croniter("30 2 * * *", start, ret_type=datetime), CronSim("30 2 * * *", start)):
    print(*(next(times).astimezone(timezone.utc).strftime("%d.%H:%M") for _ in range(4)), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "days and times in UTC of croniter 7.0.0, and of cronsim 2.8: $seen"
[ "$seen" = "24.00:30 25.00:30 25.01:30 26.01:30; 24.00:30 25.00:30 26.01:30 27.01:30; " ]
