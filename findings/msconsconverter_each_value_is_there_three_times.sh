#!/usr/bin/env bash
# msconsconverter 2.0.0 (meter readings of MSCONS to CSV, for Python): each value but the first is there three times,
# for the period before its own, for an empty one, and for its own.
#
# Guess: a row for each value: 1.5, 2.5 and 3.5 of three quarters of an hour.
# Seen: ten rows, the last value four times. Once a period has ended, each later segment adds a row of what was read
# last, the trailers UNT and UNZ and the empty text after them too.
#
# Who it hurts: whoever adds up the rows: energy counts more than twice, and quarters have several values.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check msconsconverter==2.0.0
cat > "$work/seen.py" << 'PYTHON'
import csv
import logging
import pathlib
import sys
from msconsconverter.functions import convert_single

folder = pathlib.Path(sys.argv[1])
segments = ["UNB+UNOC:3+1:500+2:500+261101:0000+1", "UNH+1+MSCONS:D:04B:UN:2.4a", "BGM+7+1+9", "UNS+D", "NAD+DP"]
segments += ["LOC+172+DE000" + "1" * 28, "LIN+1"]
for value, start, end in (("1.5", "00", "15"), ("2.5", "15", "30"), ("3.5", "30", "45")):
    segments += [f"QTY+220:{value}", f"DTM+163:2026100100{start}?+00:303", f"DTM+164:2026100100{end}?+00:303"]
segments += ["UNT+16+1", "UNZ+1+1"]
(folder / "readings.txt").write_text("'".join(segments) + "'")
logging.disable()
convert_single(str(folder / "readings.txt"), str(folder / "rows"), logging.getLogger())
(file,) = (folder / "rows").iterdir()
with file.open() as lines:
    rows = list(csv.DictReader(lines))
print(*(f"{row['VALUE']} {row['MINUTE_PS']}-{row['MINUTE_PE']}" for row in rows), sep="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py" "$work")
echo "msconsconverter 2.0.0: $seen"
[ "$seen" = "1.5 00-15; 2.5 00-15; 2.5 15-15; 2.5 15-30; \
3.5 15-30; 3.5 30-30; 3.5 30-45; 3.5 30-45; 3.5 30-45; 3.5 30-45" ]
