#!/usr/bin/env bash
# timelength 3.0.4 (durations in English for Python): what stands before "and a half" is left out. One and a half hours
# are 1800 seconds, and two and a half days 12 hours.
#
# Guess: 5400 and 216000 seconds, as 1.5 hours and 2.5 days are; it reads "half of a day", numbers in words, and
# "1 and 1/2 hours". What it cannot read has no success.
# Seen: 1800 and 43200 seconds, with success. "1 1/2 hours" is 1800, and "an hour and a half" is 3600. Only the list
# `invalid` has the number that was left out.
#
# Who it hurts: whoever lets people write how long a thing takes or lasts: a rent of two and a half days is half a day.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check timelength==3.0.4
cat > "$work/seen.py" << 'PYTHON'
from timelength import TimeLength

for text in ("one and a half hours", "two and a half days", "1 1/2 hours", "an hour and a half", "1 and 1/2 hours",
             "1.5 hours", "half of a day"):
    result = TimeLength(text).result
    print(f"{result.seconds:.0f}" if result.success else "no success", end=" ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "timelength 3.0.4, one and a half hours, two and a half days, 1 1/2 hours, an hour and a half," \
  "1 and 1/2 hours, 1.5 hours and half of a day: $seen"
[ "$seen" = "1800 43200 1800 3600 5400 5400 43200 " ]
