#!/usr/bin/env bash
# pycron 3.3.0 (for Python; taskiq's scheduler uses it): the weekday 7 is accepted and never comes. cron, and croniter
# 7.0.0, take 0 and 7 for Sunday.
#
# Guess: "0 0 * * 7" is Sunday, or is refused.
# Seen: in the first half of March 2026 pycron has no day for it, and croniter has the Sundays 1 and 8. For 5-7 it has
# Fridays and Saturdays only. With 0 it has the Sundays.
#
# Who it hurts: whoever moves a crontab to it. The job of Sunday night, often the backup or the week's report, is
# scheduled without a complaint and does not run.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check pycron==3.3.0 croniter==7.0.0
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime
import croniter, pycron

DAYS = [datetime(2026, 3, day) for day in range(1, 15)]
for weekday in ("7", "5-7", "0"):
    for fits in (pycron.is_now, croniter.croniter.match):
        print(*[day.day for day in DAYS if fits(f"0 0 * * {weekday}", day)] or ["none"], end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "pycron 3.3.0 and croniter 7.0.0, weekday 7, 5-7 and 0: $seen"
[ "$seen" = "none; 1 8; 6 7 13 14; 1 6 7 8 13 14; 1 8; 1 8; " ]
