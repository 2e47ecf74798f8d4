#!/usr/bin/env bash
# businesstimedelta 1.0.1 (working time for Python): time off that lasts until the end of the working day, or longer, is
# working time.
#
# Guess: of a day of 9:00 to 18:00 with time off from 16:00 to 18:00 seven hours are left, as eight are with time off
# from 12:00 to 13:00, or from 16:00 to 17:00.
# Seen: nine hours for 16:00 to 18:00, and for 16:00 to 20:00. Only time off that ends before the working day does is
# taken off.
#
# Who it hurts: whoever has short days, such as Fridays or the day before a holiday: deadlines and repair times count
# hours in which nobody is there.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
  businesstimedelta==1.0.1 pytz==2025.2 holidays==0.60
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime, time
from businesstimedelta import Rules, WorkDayRule

day = WorkDayRule(start_time=time(9), end_time=time(18))
for start, end in ((12, 13), (16, 17), (16, 18), (16, 20)):
    off = WorkDayRule(start_time=time(start), end_time=time(end), time_off=True)
    hours = Rules([day, off]).difference(datetime(2026, 11, 30, 9), datetime(2026, 12, 1, 9)).hours
    print(f"{start} to {end}: {hours}", end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "businesstimedelta 1.0.1, hours of a day from 9 to 18 with time off: $seen"
[ "$seen" = "12 to 13: 8; 16 to 17: 8; 16 to 18: 9; 16 to 20: 9; " ]
