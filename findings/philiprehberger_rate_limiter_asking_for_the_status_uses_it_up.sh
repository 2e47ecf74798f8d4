#!/usr/bin/env bash
# philiprehberger-rate-limiter 0.6.0 (rate limits for Python): to ask for the status of a key counts as a request.
#
# Guess: status() tells and changes nothing. By its documentation it reads where a key stands, and the limiter has
# allow() to count.
# Seen: of a limit of 5, after five calls of status(), allow() says no. remaining() and get_stats() change nothing.
#
# Who it hurts: whoever writes what is left to a log, a header or a metric: each look costs one request, and half of the
# limit is gone before it is used.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check philiprehberger-rate-limiter==0.6.0
cat > "$work/seen.py" << 'PYTHON'
from philiprehberger_rate_limiter import Algorithm, RateLimiter

for algorithm in Algorithm:
    for look in ("status", "remaining"):
        limiter = RateLimiter(5, 3600 * 24 * 365, algorithm)
        for _ in range(5):
            getattr(limiter, look)("key")
        print(algorithm.value, look, limiter.allow("key"), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "philiprehberger-rate-limiter 0.6.0, is a request allowed after five looks at a limit of 5? $seen"
[ "$seen" = "fixed_window status False; fixed_window remaining True; \
sliding_window status False; sliding_window remaining True; \
token_bucket status False; token_bucket remaining True; \
leaky_bucket status False; leaky_bucket remaining True; " ]
