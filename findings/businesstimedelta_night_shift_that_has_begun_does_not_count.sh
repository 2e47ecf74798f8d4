#!/usr/bin/env bash
# businesstimedelta 1.0.1 (working time for Python): of a shift over midnight nothing counts from the minute on in which
# it begins. At 22:00 the next working time of the shift of 22:00 to 06:00 is tomorrow's.
#
# Guess: from 22:00, 23:00 and 02:00 to 06:00 it is 8, 7 and 4 hours, as of a day's shift what is left of it counts.
# The page has a section on shifts over midnight.
# Seen: 0 hours each. From 21:59 it is 8 hours. 4 hours after 23:00 of 30 November are over at 02:00 of 2 December
# instead of 03:00 of the 1st.
#
# Who it hurts: support or repairs with a night shift: what is reported in the night has a day more until it is late,
# and the hours of those who worked in it are none.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
  businesstimedelta==1.0.1 pytz==2025.2 holidays==0.60
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime, time
from businesstimedelta import BusinessTimeDelta, Rules, WorkDayRule

shift = Rules([WorkDayRule(start_time=time(22), end_time=time(6))])
end = datetime(2026, 12, 1, 6)
for start in ((11, 30, 21, 59), (11, 30, 22), (11, 30, 23), (12, 1, 2)):
    print(shift.difference(datetime(2026, *start), end).hours, end=" ")
print(f"{datetime(2026, 11, 30, 23) + BusinessTimeDelta(shift, hours=4):%d %b %H:%M}")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "businesstimedelta 1.0.1, hours to 06:00 from 21:59, 22:00, 23:00 and 02:00; 23:00 and 4 hours: $seen"
[ "$seen" = "8 0 0 0 02 Dec 02:00" ]
