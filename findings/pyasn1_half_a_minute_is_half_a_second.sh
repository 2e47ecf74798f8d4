#!/usr/bin/env bash
# pyasn1 0.6.5 (ASN.1 for Python): the GeneralizedTime 202611301200.5Z, half a minute after twelve, is half a second
# after twelve, and so is 2026113012.5Z, half past twelve.
#
# Guess: 12:00:30 and 12:30:00. X.680 has times without seconds and without minutes, and the fraction is one of the last
# unit that is there. The class reads such times without a fraction.
# Seen: 12:00:00.500000 both times. With ,25 it is a quarter of a second.
#
# Who it hurts: readers of records from switches and meters that leave seconds out: durations and the order of records
# are off by up to an hour, and no error tells it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check pyasn1==0.6.5
cat > "$work/seen.py" << 'PYTHON'
from pyasn1.type.useful import GeneralizedTime

for text in ("202611301200Z", "202611301200.5Z", "2026113012.5Z", "2026113012,25Z", "20261130120000.5Z"):
    print(GeneralizedTime(text).asDateTime.strftime("%H:%M:%S.%f"), end=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "pyasn1 0.6.5, 1200, 1200.5, 12.5, 12,25 and 120000.5: $seen"
[ "$seen" = "12:00:00.000000, 12:00:00.500000, 12:00:00.500000, 12:00:00.250000, 12:00:00.500000, " ]
