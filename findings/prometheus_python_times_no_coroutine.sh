#!/usr/bin/env bash
# prometheus_client 0.26.0 (for Python): @histogram.time() on an async function measures how long it takes to make the
# coroutine, which is nothing, and @counter.count_exceptions() on one counts none. As "with" blocks in it, both work.
#
# Guess: a decorator of a library of today knows async functions, or refuses them.
# Seen: a function that sleeps for 0.2 s and then fails: decorated, it counts as one observation of less than 10 ms,
# with no exception. With the blocks inside, it is 0.2 s and one exception.
#
# Who it hurts: the dashboards of asyncio services: calls are there, in the right number, fast and without errors. A
# scaler that works with the duration of calls starts nothing.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check prometheus_client==0.26.0
cat > "$work/seen.py" << 'PYTHON'
import asyncio, prometheus_client as prometheus

decorated, inside = prometheus.Histogram("decorated", "help"), prometheus.Histogram("inside", "help")
decorated_errors, inside_errors = prometheus.Counter("decorated_e", "help"), prometheus.Counter("inside_e", "help")


@decorated.time()
@decorated_errors.count_exceptions()
async def decorate():
    await asyncio.sleep(0.2)
    raise ValueError


async def enclose():
    with inside.time(), inside_errors.count_exceptions():
        await asyncio.sleep(0.2)
        raise ValueError


for work in (decorate, enclose):
    try:
        asyncio.run(work())
    except ValueError:
        pass
for name in ("decorated", "inside"):
    value = prometheus.REGISTRY.get_sample_value
    count, total, errors = (value(f"{name}_{what}") for what in ("count", "sum", "e_total"))
    took = "no time" if total < 0.01 else "at least 0.2 s" if total > 0.19 else f"{total} s"
    print(f"{name}: {count:.0f} call, {took}, {errors:.0f} errors", end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "prometheus_client 0.26.0: $seen"
[ "$seen" = "decorated: 1 call, no time, 0 errors; inside: 1 call, at least 0.2 s, 1 errors; " ]
