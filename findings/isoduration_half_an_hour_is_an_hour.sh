#!/usr/bin/env bash
# isoduration 20.11.0 (ISO 8601 durations for Python): a fraction is rounded when a duration meets a time. PT0.5H after
# noon is 13:00, and PT0.5H before noon is noon.
#
# Guess: 12:30 and 11:30, as isodate 0.7.2 has it, for ISO 8601 allows a fraction in the last place.
# Seen: PT1.5H after noon is 14:00 and before it 11:00, and P0.5Y is a year or none. The time that results is rounded,
# and half of an hour or year up. PT0.4H is nothing. PT90M is right.
#
# Who it hurts: whoever reads time limits, intervals and meter periods from ISO 8601: a start and an end that are found
# from each other do not agree, and there is no error.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check isodate==0.7.2 isoduration==20.11.0
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime
from isodate import parse_duration as of_isodate
from isoduration import parse_duration

NOON = datetime(2026, 1, 1, 12)
for text in ("PT0.4H", "PT0.5H", "PT1.5H", "PT90M"):
    durations = (parse_duration(text), of_isodate(text))
    print(text, *(f"{NOON - duration:%T} {NOON + duration:%T}" for duration in durations), end="; ")
print("P0.5Y", *(f"{time:%F}" for time in (NOON - parse_duration("P0.5Y"), NOON + parse_duration("P0.5Y"))))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "isoduration 20.11.0 and isodate 0.7.2, before and after noon: $seen"
[ "$seen" = "PT0.4H 12:00:00 12:00:00 11:36:00 12:24:00; PT0.5H 12:00:00 13:00:00 11:30:00 12:30:00; \
PT1.5H 11:00:00 14:00:00 10:30:00 13:30:00; PT90M 10:30:00 13:30:00 10:30:00 13:30:00; P0.5Y 2026-01-01 2027-01-01" ]
