#!/usr/bin/env bash
# justbackoff 0.6.0 (waits between tries for Python): reset() sets the number of tries to the first wait in seconds, and
# not to 0. Where the first wait is 5 s, the one after a reset is 160 s.
#
# Guess: 5 s, the first wait again: the documentation says that the wait returns to min_ms on each reset.
# Seen: 160 s, five doublings. With 30 s it is the longest wait that is allowed, after tries that were two. Up to half a
# second, as by default, it is right.
#
# Who it hurts: whoever resets after a success, as one does: each following failure, the first, too, waits as after
# many, and a worker stands still for minutes.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check justbackoff==0.6.0
cat > "$work/seen.py" << 'PYTHON'
from justbackoff import Backoff

for first in (100, 1000, 5000, 30000):
    backoff = Backoff(min_ms=first, max_ms=600000)
    waits = [backoff.duration(), backoff.duration()]
    backoff.reset()
    print(*(f"{wait:g}" for wait in (*waits, backoff.duration())), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "justbackoff 0.6.0, two waits in seconds and the one after a reset, of 0.1, 1, 5 and 30: $seen"
[ "$seen" = "0.1 0.2 0.1; 1 2 2; 5 10 160; 30 60 600; " ]
