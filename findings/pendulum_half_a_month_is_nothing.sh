#!/usr/bin/env bash
# pendulum 3.3.0 (for Python): a duration of months or years times or divided by a number has whole months and years
# only. What is left over is dropped, down to nothing.
#
# Guess: half of duration(years=1) is six months, and half a month is about 15 days (a month has 30 days in
# total_days()), or both are an error.
# Seen: duration(years=1) / 2, duration(months=1) / 2 and even duration(months=1) * 1.5 have no days at all.
# duration(years=3) / 2 has 730 days. duration(months=6) / 2 is three months, and days=1 times 1.5 is 36 hours.
#
# Who it hurts: whoever takes a part of a contract's or a retention's period: a notice at half time is due at once, and
# a period of one and a half months has ended before it began.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check pendulum==3.3.0
cat > "$work/seen.py" << 'PYTHON'
from pendulum import duration

for part in (duration(years=1) / 2, duration(months=1) / 2, duration(months=1) * 1.5, duration(years=3) / 2,
             duration(months=6) / 2, duration(days=1) * 1.5):
    print(part.total_days(), end=" ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "pendulum 3.3.0: days of 1y/2, 1m/2, 1m*1.5, 3y/2, 6m/2, 1d*1.5: $seen"
[ "$seen" = "0.0 0.0 0.0 730.0 90.0 1.5 " ]
