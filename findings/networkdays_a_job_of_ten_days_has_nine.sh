#!/usr/bin/env bash
# python-networkdays 1.2 (working days for Python): a job gets fewer days than its hours need, as soon as there is a
# weekend in it. 80 hours at 8 a day are nine days.
#
# Guess: ten working days, from Monday, 2 March 2026, to Friday the 13th, as with a calendar of the year.
# Seen: nine, up to Thursday the 12th. It takes as many days of the calendar as it needs working days, and one more, and
# leaves out the weekends. 160 hours are 15 days instead of 20, and 16 hours from a Saturday on are one day.
#
# Who it hurts: whoever plans or bills by the list of days: a tenth to half of the job is in no day, and its end is too
# early, without an error.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check python-networkdays==1.2
cat > "$work/seen.py" << 'PYTHON'
from datetime import date
from networkdays.networkdays import JobSchedule, Networkdays

for hours, start in ((40, date(2026, 3, 2)), (80, date(2026, 3, 2)), (160, date(2026, 3, 2)), (16, date(2026, 3, 7))):
    for calendar in (None, Networkdays(start, date(2026, 12, 31))):
        days = JobSchedule(hours, 8, start, calendar).jobdays
        print(len(days), f"{days[-1]:%d.%m.}", end=" " if calendar is None else "; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "python-networkdays 1.2, days and the last of 40, 80, 160 and 16 hours, alone and with a calendar: $seen"
[ "$seen" = "5 06.03. 5 06.03.; 9 12.03. 10 13.03.; 15 20.03. 20 27.03.; 1 09.03. 2 10.03.; " ]
