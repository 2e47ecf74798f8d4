#!/usr/bin/env bash
# limits 5.8.0 (rate limits for Python): with the fixed window a hit of a cost that is refused is counted all the same.
# Of 10 in a window, after 8 and a refused 4, a hit of 2 is refused too.
#
# Guess: 2 are left and a hit of 2 passes, as with the moving window of the same library: hit() tells whether the cost
# could be deducted, and what could not be is not.
# Seen: 0 are left and the hit of 2 is refused, and so is a hit of 1 until the window ends.
#
# Who it hurts: whoever counts batches or bytes: a client that tries a large batch once gets none of the small ones
# through that it was told it had left.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check limits==5.8.0
cat > "$work/seen.py" << 'PYTHON'
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter

LIMIT = parse("10 per 12 months")
for strategy in (FixedWindowRateLimiter, MovingWindowRateLimiter):
    limiter = strategy(MemoryStorage())
    passed = [limiter.hit(LIMIT, "client", cost=cost) for cost in (4, 4, 4)]
    left = limiter.get_window_stats(LIMIT, "client").remaining
    print(*passed, left, limiter.hit(LIMIT, "client", cost=2), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "limits 5.8.0, hits of 4, 4 and 4 of 10, what is left and a hit of 2, in a fixed and a moving window: $seen"
[ "$seen" = "True True False 0 False; True True False 2 True; " ]
