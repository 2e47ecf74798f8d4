#!/usr/bin/env bash
# durationpy 0.11 (durations of Go for Python): to_str() writes seconds with six digits in all. 12.345678 seconds are
# 12.3457s, and an hour and 50 microseconds are 1h5e-05s, which from_str() refuses.
#
# Guess: 12.345678s and 1h0m0.00005s, as Go writes these. A timedelta has whole microseconds, and Go's text holds
# nanoseconds.
# Seen: 12.3457s, which is 22 microseconds more, and 1h5e-05s. A minute less a microsecond is 60s. Below a second it is
# right: 345678 microseconds are 345ms678us.
#
# Who it hurts: whoever keeps durations as texts for programs in Go: sums drift, equal ones differ after a round trip,
# and now and then there is a text that neither side reads.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check durationpy==0.11
cat > "$work/seen.py" << 'PYTHON'
from datetime import timedelta

import durationpy

for microseconds in 12_345_678, 59_999_999, 345_678, 3_600_000_050:
    text = durationpy.to_str(timedelta(microseconds=microseconds))
    print(text, end=" ")
    try:
        print(durationpy.from_str(text) // timedelta(microseconds=1), end="; ")
    except durationpy.DurationError:
        print("refused")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "durationpy 0.11, 12345678, 59999999, 345678 and 3600000050 microseconds, as texts and back: $seen"
[ "$seen" = "12.3457s 12345700; 60s 60000000; 345ms678us 345678; 1h5e-05s refused" ]
