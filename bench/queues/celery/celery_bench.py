#!/usr/bin/env python3
"""Celery's side of the part `tiny` of bench/mesh/mesh_bench.

    celery_bench.py work REDIS_URL          two worker processes, until SIGTERM
    celery_bench.py produce REDIS_URL FILE  each line of FILE is an item; prints a line of JSON
"""

import json
import pathlib
import sys
import time

import celery
import celery.signals
import redis

WORKERS = 2
HANDLED = "handled"  # a hash: how often each item was handled
READY = "ready"  # how many workers are
POLL_SECONDS = 0.005

app = celery.Celery("celery_bench")
app.conf.update(
    task_acks_late=True,  # else an item is lost with the process that works on it
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
)
counts = None


@app.task(name="item")
def count_item(line):
    """Does nothing but count the item before it is acknowledged."""
    counts.hincrby(HANDLED, int(line), 1)


@celery.signals.worker_process_init.connect
def tell_ready(**_):
    counts.incr(READY)


def work():
    app.worker_main(["worker", "--concurrency", str(WORKERS), "--loglevel", "WARNING",
                     "--without-gossip", "--without-mingle", "--without-heartbeat"])


def produce(lines):
    count_item.delay(lines[0])
    await_items(1)
    counts.delete(HANDLED)

    began, cpu_before = time.monotonic(), time.process_time()
    for line in lines:
        count_item.delay(line)
    await_items(len(lines))
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu_before
    print(json.dumps({"items": len(lines), "handled": sum(map(int, counts.hvals(HANDLED))),
                      "seconds": seconds, "items_per_second": len(lines) / seconds,
                      "cpu_seconds": cpu_seconds}))


def await_items(items):
    """Returns when so many different items are counted."""
    while counts.hlen(HANDLED) < items:
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    verb, url, *files = sys.argv[1:]
    app.conf.broker_url = url
    counts = redis.Redis.from_url(url)
    if verb == "work":
        work()
    else:
        produce(pathlib.Path(files[0]).read_text(encoding="ascii").split())
