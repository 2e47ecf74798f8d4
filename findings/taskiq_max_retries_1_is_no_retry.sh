#!/usr/bin/env bash
# taskiq 0.13.0 (for Python): max_retries counts the runs, the first one, too. With max_retries=1 nothing is retried.
# dramatiq 2.2.1 counts the retries.
#
# Guess: max_retries=1 is two runs, as in Celery, Dramatiq and RQ.
# Seen: with SimpleRetryMiddleware and retry_on_error a task that fails runs once with max_retries=1 and three times
# with 3. Dramatiq runs it twice and four times.
#
# Who it hurts: whoever wants one more try for a task that calls a service. The first failure is the last one, and the
# log says that the maximum of retries is reached.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check taskiq==0.13.0 dramatiq==2.2.1
cat > "$work/seen.py" << 'PYTHON'
import asyncio, logging
import dramatiq
from dramatiq.brokers.stub import StubBroker
from taskiq import InMemoryBroker, SimpleRetryMiddleware

logging.disable(logging.CRITICAL)
runs = {}


def fail(name):
    runs[name] = runs.get(name, 0) + 1
    raise ValueError(name)


async def with_taskiq(retries):
    broker = InMemoryBroker(await_inplace=True).with_middlewares(SimpleRetryMiddleware())
    task = broker.task(retry_on_error=True, max_retries=retries)(named("taskiq", retries))
    await broker.startup()
    await task.kiq()
    await broker.wait_all()
    await broker.shutdown()


def named(library, retries):
    def task():
        fail(f"{library} {retries}")

    task.__name__ = task.__qualname__ = f"{library}_{retries}"
    return task


def with_dramatiq(retries):
    broker = StubBroker()
    actor = dramatiq.actor(named("dramatiq", retries), broker=broker, max_retries=retries, min_backoff=1, max_backoff=1)
    worker = dramatiq.Worker(broker, worker_timeout=100)
    worker.start()
    actor.send()
    broker.join("default", fail_fast=False)
    worker.join()
    worker.stop()


for count in (1, 3):
    asyncio.run(with_taskiq(count))
    with_dramatiq(count)
print(", ".join(f"{name}: {number}" for name, number in runs.items()))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "taskiq 0.13.0 and dramatiq 2.2.1, runs by max_retries: $seen"
[ "$seen" = "taskiq 1: 1, dramatiq 1: 2, taskiq 3: 3, dramatiq 3: 4" ]
