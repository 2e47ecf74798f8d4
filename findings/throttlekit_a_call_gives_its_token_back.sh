#!/usr/bin/env bash
# throttlekit 0.2.0 (rate limits for Python's asyncio): a function decorated with limit() gives its token back as soon
# as it is done. Two calls an hour are as many as one likes.
#
# Guess: of ten calls of a function with 2 tokens that are filled up each hour two go through, and the third one waits,
# as without the decorator with "async with".
# Seen: all ten go through at once. "async with" lets two through. What is left is a limit of calls at the same time,
# for which the library has another option.
#
# Who it hurts: whoever decorates the call of a service, as the documentation shows first: there is no limit, until the
# service itself refuses.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check throttlekit==0.2.0 \
  "sqlalchemy[asyncio]==2.1.9"
cat > "$work/seen.py" << 'PYTHON'
import asyncio
from throttlekit import TokenBucketRateLimiter


async def count(decorated):
    limiter = TokenBucketRateLimiter(max_tokens=2, refill_interval=3600)
    await limiter.start()
    calls = 0

    async def plain():
        nonlocal calls
        calls += 1

    async def within():
        async with limiter:
            await plain()

    call = limiter.limit(plain) if decorated else within
    try:
        for _ in range(10):
            await asyncio.wait_for(call(), 0.5)
    except asyncio.TimeoutError:
        pass
    await limiter.stop()
    return calls


print(asyncio.run(count(True)), asyncio.run(count(False)))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "throttlekit 0.2.0, calls out of ten with two tokens an hour, decorated and with async with: $seen"
[ "$seen" = "10 2" ]
