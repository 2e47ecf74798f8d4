#!/usr/bin/env bash
# larzlimit 0.1.0 (rate limits for Python): the cost of a hit counts with one of the three strategies only. By default,
# and with fixed windows, a hit of cost 10 is one of cost 1.
#
# Guess: of a limit of 20 two hits of cost 10 are allowed, with each strategy: hit() takes a cost, and the documentation
# says that the three have the same interface.
# Seen: 20 with "sliding", which is the default, and with "fixed"; 2 with "token". Nothing tells that the cost is left
# out.
#
# Who it hurts: whoever counts bytes, rows or expensive calls: ten times as much goes through.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check larzlimit==0.1.0
cat > "$work/seen.py" << 'PYTHON'
from larzlimit import RateLimiter

for strategy in ("sliding", "fixed", "token"):
    limiter = RateLimiter(limit=20, window=60, strategy=strategy)
    allowed = sum(limiter.hit("key", cost=10, now=1000.0).allowed for _ in range(100))
    print(strategy, allowed, end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "larzlimit 0.1.0, hits of cost 10 that a limit of 20 allows: $seen"
[ "$seen" = "sliding 20; fixed 20; token 2; " ]
