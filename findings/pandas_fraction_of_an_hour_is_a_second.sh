#!/usr/bin/env bash
# pandas 3.1.1: Timedelta() of an ISO 8601 duration with a fraction of hours, minutes or days is another duration.
# PT1.5H is five hours and a second.
#
# Guess: PT1.5H is an hour and a half, as isodate 0.7.2 has it and as Timedelta("1.5h") is. A form that it does not know
# is a ValueError, as PT0,5H and P0.5Y are.
# Seen: PT1.5H is 5:00:01, PT2.5M is 0:05:02, and P1.5D is 5 days and a second: what is before the point counts as
# seconds, and what is after it as the unit. PT1.5S is right.
#
# Who it hurts: whoever reads times of work, shifts or timeouts that other programs write in ISO 8601. Nothing fails,
# and the sum is wrong.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pandas==3.1.1
cat > "$work/seen.py" << 'PYTHON'
import pandas

print(*(f"{text} {pandas.Timedelta(text).total_seconds()}" for text in ("PT1.5H", "PT2.5M", "P1.5D", "PT1.5S", "1.5h")))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "pandas 3.1.1: seconds of $seen"
[ "$seen" = "PT1.5H 18001.0 PT2.5M 302.0 P1.5D 432001.0 PT1.5S 1.5 1.5h 5400.0" ]
