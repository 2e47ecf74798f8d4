#!/usr/bin/env bash
# recurrent 0.4.1 (recurring dates in words for Python): "every month for a year" is each year, without an end.
#
# Guess: monthly, until a year from now: "every monday for 6 weeks" is weekly until 13 April, asked on 2 March.
# Seen: FREQ=YEARLY without UNTIL. "every day for a week" is weekly, and "every day for a month" is monthly. With a
# number, as in "every month for 12 months", it is right.
#
# Who it hurts: whoever takes terms of instalments or reminders in plain words: the first comes, the next one a year
# later, and they never end.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check recurrent==0.4.1
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime

from recurrent import RecurringEvent

for words in (
    "every month for a year",
    "every day for a week",
    "every day for a month",
    "every month for 12 months",
    "every monday for 6 weeks",
):
    rule = RecurringEvent(now_date=datetime(2026, 3, 2, 10)).parse(words)
    print(*(part for part in rule.split(";") if part.startswith(("FREQ", "UNTIL"))), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "recurrent 0.4.1, month for a year, day for a week and a month, month for 12 months, Monday for 6 weeks: $seen"
some="FREQ=YEARLY; FREQ=WEEKLY; FREQ=MONTHLY; "
[ "$seen" = "${some}FREQ=MONTHLY UNTIL=20270302; FREQ=WEEKLY UNTIL=20260413; " ]
