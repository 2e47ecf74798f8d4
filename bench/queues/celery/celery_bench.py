#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Celery's side of bench/mesh/mesh_bench.

    celery_bench.py work REDIS_URL         two worker processes, until SIGTERM
    celery_bench.py tiny REDIS_URL FILE    each line of FILE is an item, with nothing to do
    celery_bench.py retail REDIS_URL FILE  the retail job

`tiny` and `retail` return when each item has been handled, and print a line of JSON.
"""

import json
import sys
import time

import celery
import celery.signals
import redis
import retail

WORKERS = 2
HANDLED = "handled"  # a hash: the result of each item
READY = "ready"  # the number of ready workers
POLL_SECONDS = 0.005

app = celery.Celery("celery_bench")
app.conf.update(
    task_acks_late=True,  # otherwise an item is lost when its worker process dies
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
)
store = None


@app.task
def count_item(line):
    """Only counts the item before it is acknowledged."""
    store.hincrby(HANDLED, int(line), 1)


@app.task(bind=True)
def bill_item(self, item):
    """Stores the item's totals before it is acknowledged; a second store writes the same value."""
    store.hset(HANDLED, self.request.id, json.dumps(retail.bill(item)))


@celery.signals.worker_process_init.connect
def tell_ready(**_):
    store.incr(READY)


def work():
    app.worker_main(["worker", "--concurrency", str(WORKERS), "--loglevel", "WARNING",
                     "--without-gossip", "--without-mingle", "--without-heartbeat"])


def produce(handle, read_items, path):
    handle.delay(next(read_items(path)))
    await_items(1)
    store.delete(HANDLED)

    began, cpu_before = time.monotonic(), time.process_time()
    items = 0
    for items, item in enumerate(read_items(path), 1):
        handle.delay(item)
    await_items(items)
    seconds, cpu_seconds = time.monotonic() - began, time.process_time() - cpu_before
    print(json.dumps({"items": items, "seconds": seconds, "cpu_seconds": cpu_seconds}))


def lines(path):
    with open(path, encoding="ascii") as text:
        yield from map(str.strip, text)


def await_items(items):
    """Returns when that many different items are handled."""
    while store.hlen(HANDLED) < items:
        time.sleep(POLL_SECONDS)


JOBS = {"tiny": (count_item, lines), "retail": (bill_item, retail.items)}

if __name__ == "__main__":
    verb, url, *files = sys.argv[1:]
    app.conf.broker_url = url
    store = redis.Redis.from_url(url)
    if verb == "work":
        work()
    else:
        produce(*JOBS[verb], *files)
