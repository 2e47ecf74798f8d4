#!/usr/bin/env bash
# cron-validator 1.0.8 (crontab lines for Python): "0 0 1 */3 *" comes in March, June and September, and "0 0 1 */2 *"
# in each even month but December.
#
# Guess: January, April, July and October, and January, March and so on: four and six times, as in a crontab.
# Seen: three and five times. It takes the months that the step divides, and leaves out the last one. Of the days,
# */10 has the 10th, 20th and 30th, and not the 1st, 11th, 21st and 31st. For hours, which begin with 0, */6 is right.
#
# Who it hurts: whoever plans with its times, or tests his crontab with it: the job of a quarter comes at the end of the
# quarter instead of its start, and the one of the last quarter never.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check cron-validator==1.0.8
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime

from cron_validator import CronValidator


def fitting(expression, times):
    return [time for time in times if CronValidator.match_datetime(expression, time)]


months = [datetime(2026, month, 1) for month in range(1, 13)]
print(*(f"{time:%b}" for time in fitting("0 0 1 */3 *", months)), end=", ")
print(*(f"{time:%b}" for time in fitting("0 0 1 */2 *", months)), end=", ")
print(*(time.day for time in fitting("0 0 */10 * *", [datetime(2026, 1, day) for day in range(1, 32)])), end=", ")
print(*(time.hour for time in fitting("0 */6 * * *", [datetime(2026, 1, 1, hour) for hour in range(24)])))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "cron-validator 1.0.8, each third month, each second month, each tenth day, each sixth hour: $seen"
[ "$seen" = "Mar Jun Sep, Feb Apr Jun Aug Oct, 10 20 30, 0 6 12 18" ]
