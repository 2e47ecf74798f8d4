#!/usr/bin/env bash
# isodate 0.7.2 (for Python) writes a duration of a month less a day as -P1M1D, which is minus a month and a day. The
# sign of the days or hours goes before all of it.
#
# Guess: what duration_isoformat() writes is the same duration when parse_duration() reads it, or it is an error, since
# ISO 8601 has no form for it.
# Seen: parse_duration("P1M") - timedelta(days=1) from 15 January 2026 is 14 February. Written as -P1M1D and read again
# it is 14 December 2025. A month less an hour is -P1MT1H, and a year less, a day more is -P1Y1D.
#
# Who it hurts: programs that keep notice periods, terms of payment or retentions as text: "a month, but a day earlier"
# is two months too early once it was stored.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check isodate==0.7.2
cat > "$work/seen.py" << 'PYTHON'
from datetime import date, timedelta
from isodate import Duration, duration_isoformat, parse_duration

notice = parse_duration("P1M") - timedelta(days=1)
text = duration_isoformat(notice)
print(date(2026, 1, 15) + notice, text, date(2026, 1, 15) + parse_duration(text), end=" ")
print(duration_isoformat(Duration(months=1, hours=-1)), duration_isoformat(Duration(years=-1, days=1)))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "isodate 0.7.2: $seen"
[ "$seen" = "2026-02-14 -P1M1D 2025-12-14 -P1MT1H -P1Y1D" ]
