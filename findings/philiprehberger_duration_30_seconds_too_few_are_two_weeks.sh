#!/usr/bin/env bash
# philiprehberger-duration 0.4.0 (durations in texts for Python): less than nothing is written as a week too little and
# days to add, and read as the sum of both. Minus 30 seconds come back as nearly two weeks.
#
# Guess: -30s, or an error: the library subtracts durations, and parse() reads what format() writes.
# Seen: "-1w 6d 23h 59m 30s", which parse() takes for 1209570 seconds. As a text with colons it is "-1d 23:59:30", which
# comes back as a day. A minus before a text that has one part, "-2h", is ignored. A duration of 30 seconds is right.
#
# Who it hurts: whoever keeps time that is left, such as a deadline less what has passed: once it is over, whoever reads
# it has two more weeks.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check philiprehberger-duration==0.4.0
cat > "$work/seen.py" << 'PYTHON'
from philiprehberger_duration import Duration, format, parse

for left in (Duration(seconds=30), Duration(minutes=10) - Duration(minutes=10, seconds=30)):
    print(left, parse(str(left)), end="; ")
print(format(-30, style="colon"), parse(format(-30, style="colon")), parse("-2h"))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "philiprehberger-duration 0.4.0, texts of 30 and -30 seconds, and seconds that they are read as: $seen"
[ "$seen" = "30s 30.0; -1w 6d 23h 59m 30s 1209570.0; -1d 23:59:30 86400.0 7200.0" ]
