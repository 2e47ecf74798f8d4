#!/usr/bin/env bash
# durations 0.3.3 (for Python): a number without a unit is ignored. 3600 is nothing, and 1h30 an hour.
#
# Guess: an error, as 1hxyz, 1h-30m and 0.5 days are errors, or 3600 seconds.
# Seen: 0 seconds, 3600 and 60 for 3600, 1h30 and 1m30. 1h30m is right.
#
# Who it hurts: whoever reads time limits, leases and terms from settings: one in seconds is none at all.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check durations==0.3.3
cat > "$work/seen.py" << 'PYTHON'
from durations import Duration
from durations.exceptions import InvalidTokenError, ScaleFormatError

for text in ("3600", "1h30", "1m30", "1h30m"):
    print(Duration(text).to_seconds(), end=" ")
for text in ("1hxyz", "1h-30m", "0.5 days"):
    try:
        print(Duration(text).to_seconds(), end=" ")
    except (InvalidTokenError, ScaleFormatError) as error:
        print(type(error).__name__, end=" ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "durations 0.3.3: $seen"
[ "$seen" = "0.0 3600.0 60.0 5400.0 ScaleFormatError ScaleFormatError InvalidTokenError " ]
