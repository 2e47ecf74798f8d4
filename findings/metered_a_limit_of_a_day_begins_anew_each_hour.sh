#!/usr/bin/env bash
# metered 1.1.0 (rate limits and quotas for Python): in memory, which is the default, whatever a limit has counted is
# forgotten an hour after its window began. Ten calls a day are 240.
#
# Guess: ten calls of one a minute pass, and then none until the day is over. The limit takes any period in seconds.
# Seen: ten pass in each hour. Every five minutes it clears out what is older than an hour, whatever the period. A limit
# of an hour is right. A token bucket that gave none for an hour is full again, too.
#
# Who it hurts: whoever sells or protects by the day or the month: the limit is up to 24 or 720 times what was set, as
# long as calls go on, and no test of a few minutes shows it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check metered==1.1.0
cat > "$work/seen.py" << 'PYTHON'
import asyncio
import time
from metered.backends.memory import InMemoryBackend
from metered.core.types import Strategy


async def passed(period, minutes):
    """How many of the calls of one a minute pass, ten in each period."""
    now = 1_772_323_200.0
    time.time = lambda: now
    backend = InMemoryBackend()
    count = 0
    for minute in range(minutes):
        result = await backend.evaluate("key", 10, period, 1, Strategy.FIXED_WINDOW)
        count += result.allowed
        now += 60
    return count

print(*(asyncio.run(passed(period, 24 * 60)) for period in (3600, 86400)))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "metered 1.1.0, calls of one a minute that pass in a day, with ten an hour and ten a day: $seen"
[ "$seen" = "240 240" ]
