#!/usr/bin/env bash
# metered 1.1.0 (rate limits and quotas for Python): two limits of the same period have one count for a client. After
# five calls of one function, limited to 100 a minute, another one, limited to five, is refused at its first call.
#
# Guess: each decorated function has its own limit.
# Seen: the first call of the second function is refused. The key has the client, the period and the strategy, and
# neither the function nor the limit. With a limit for 61 seconds it passes.
#
# Who it hurts: whoever gives a dear function a small limit beside a large one for the others: clients that use the
# cheap ones are locked out of the dear one.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check metered==1.1.0
cat > "$work/seen.py" << 'PYTHON'
import asyncio
from types import SimpleNamespace
from metered import Metered, Strategy


async def first_call(period):
    """Whether the first call of a function passes after five of another one."""
    meter = Metered()

    @meter.limit(100, 60, Strategy.FIXED_WINDOW)
    async def cheap(request):
        return "passed"

    @meter.limit(5, period, Strategy.FIXED_WINDOW)
    async def dear(request):
        return "passed"

    request = SimpleNamespace(client=SimpleNamespace(host="client"))
    for call in range(5):
        await cheap(request)
    try:
        return await dear(request)
    except Exception as error:
        return str(error)

print(*(asyncio.run(first_call(period)) for period in (60, 61)), sep=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "metered 1.1.0, first call of a second function with a limit of 60 and of 61 seconds: $seen"
[ "$seen" = "Rate limit exceeded, passed" ]
