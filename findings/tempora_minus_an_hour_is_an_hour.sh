#!/usr/bin/env bash
# tempora 5.13.0 (dates and times for Python): parse_timedelta() leaves signs out. -1 hour is an hour, and 1 day, -1
# hour is 25 hours.
#
# Guess: an hour less than nothing, or ValueError, as its page promises for other inputs. What str() writes for a
# negative timedelta, -1 day, 23:00:00, is read as the same.
# Seen: 1:00:00, 1 day, 1:00:00, and for -1 day, 23:00:00 it is 1 day, 23:00:00. There is no error.
#
# Who it hurts: whoever keeps differences as texts, as of a time sheet or of a clock: an hour too few is one too many,
# and one stored by str() comes back as two days all but an hour.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check tempora==5.13.0
cat > "$work/seen.py" << 'PYTHON'
from datetime import timedelta

from tempora import parse_timedelta

for text in "-1 hour", "1 day, -1 hour", "-1:30:00", str(timedelta(hours=-1)):
    print(parse_timedelta(text), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "tempora 5.13.0, '-1 hour', '1 day, -1 hour', '-1:30:00' and '-1 day, 23:00:00': $seen"
[ "$seen" = "1:00:00; 1 day, 1:00:00; 1:30:00; 1 day, 23:00:00; " ]
