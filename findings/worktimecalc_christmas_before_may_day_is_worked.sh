#!/usr/bin/env bash
# worktimecalc 0.1.4 (working time for Python): of a list of holidays only those up to the last one of the list count.
# With Christmas named before May Day, Christmas is a working day.
#
# Guess: 64 hours from 21 to 31 December 2026, nine days of work less Christmas, in whatever order the holidays are: the
# documentation asks for a list of dates.
# Seen: 72 hours, and eight on Christmas Day itself. With the same dates in order it is 64 and none. May Day counts.
#
# Who it hurts: whoever adds moveable or regional holidays at the end of a list, or takes them from a set: times to
# answer and hours to pay are wrong on some holidays only.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check worktimecalc==0.1.4
cat > "$work/seen.py" << 'PYTHON'
from datetime import date
from worktimecalc.calc import WorkTimeCalculator

HOLIDAYS = [date(2026, 1, 1), date(2026, 12, 25), date(2026, 5, 1)]
for holidays in (HOLIDAYS, sorted(HOLIDAYS)):
    calculator = WorkTimeCalculator(start=9, end=17, holidays=holidays)
    for first, last in (("12-21", "12-31"), ("12-25", "12-25"), ("05-01", "05-01")):
        time = calculator(f"2026-{first}T09:00:00", f"2026-{last}T17:00:00")
        print(int(time.total_seconds() / 3600), end=" ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "worktimecalc 0.1.4, hours of 21 to 31 December, Christmas and May Day, with the dates as named and sorted: $seen"
[ "$seen" = "72 8 0 64 0 0 " ]
