#!/usr/bin/env bash
# metered 1.1.0 (rate limits and quotas for Python): a quota begins anew as soon as more of the month is over than is
# left. Ten a month, first used on the 1st, are ten again on the 16th.
#
# Guess: the quota is used up until the 1st of the next month: the documentation says that it resets on that day.
# Seen: refused on the 2nd and the 15th, and allowed on the 17th, with nine left. The window is compared with the time
# that is left of the month, which gets shorter, instead of with the month. A daily quota is full again at noon.
#
# Who it hurts: whoever bills by quotas: a customer that uses them up early in the month gets them twice, and one that
# begins late does not.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check metered==1.1.0
cat > "$work/seen.py" << 'PYTHON'
import asyncio
import time
from datetime import datetime, timezone
from metered.backends.memory import InMemoryBackend
from metered.core import quota
from metered.core.types import IdentifierType

clock = None


class Datetime(datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(clock.timestamp(), tz)


quota.datetime = Datetime
time.time = lambda: clock.timestamp()


async def left(period, times):
    """What is left after all of it is used, and after one more at each of the times."""
    global clock
    clock = datetime(2026, 3, 1, tzinfo=timezone.utc)
    engine = quota.QuotaEngine(InMemoryBackend(cleanup_interval=float("inf")))
    await engine.set_plan("client", "plan", 10, period, IdentifierType.USER_ID)
    seen = []
    for cost, (day, hour) in zip([10] + [1] * len(times), [(1, 0)] + times):
        clock = datetime(2026, 3, day, hour, tzinfo=timezone.utc)
        result = await engine.check_quota("client", "plan", cost)
        seen.append(f"{result.remaining}" if result.allowed else "refused")
    return " ".join(seen)

print(asyncio.run(left("monthly", [(2, 0), (15, 0), (17, 0)])), end="; ")
print(asyncio.run(left("daily", [(1, 11), (1, 13)])))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "metered 1.1.0, left of 10 on the 1st, 2nd, 15th and 17th, and of 10 a day at 0, 11 and 13: $seen"
[ "$seen" = "0 refused refused 9; 0 refused 9" ]
