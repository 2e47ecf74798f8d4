#!/usr/bin/env bash
# Arrow 1.4.0 (for Python): a range of hours leaves out the hour that autumn repeats. In spring it is right.
#
# Guess: the hours from 00:00 to 04:00 on 25 October 2026 in Berlin are six: 02:00 comes twice, as +02:00 and as +01:00.
# Seen: five. 02:00+02:00 is followed by 03:00+01:00, two hours later. The hours in UTC of the same time are six.
#
# Who it hurts: whoever makes one item of work, one file or one meter reading for each hour of a day: that day has 24
# items instead of 25, and the energy or the calls of an hour are never billed.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check arrow==1.4.0 tzdata==2025.2
cat > "$work/seen.py" << 'PYTHON'
import arrow

start, end = (arrow.get(f"2026-10-25T0{hour}:00", tzinfo="Europe/Berlin") for hour in (0, 4))
print(*(hour.format("HHZ") for hour in arrow.Arrow.range("hour", start, end)), end="; ")
print(len(list(arrow.Arrow.range("hour", start.to("UTC"), end.to("UTC")))), end="; ")
start, end = (arrow.get(f"2026-03-29T0{hour}:00", tzinfo="Europe/Berlin") for hour in (0, 4))
print(*(hour.format("HHZ") for hour in arrow.Arrow.range("hour", start, end)))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "Arrow 1.4.0: hours in autumn, their number in UTC, hours in spring: $seen"
[ "$seen" = "00+0200 01+0200 02+0200 03+0100 04+0100; 6; 00+0100 01+0100 03+0200 04+0200" ]
