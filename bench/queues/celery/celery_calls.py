#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Celery's side of bench/calls/call_bench.

    celery_calls.py work REDIS_URL                two worker processes, until SIGTERM
    celery_calls.py call REDIS_URL CALLS CALLERS  prints what each call took, as a line of JSON
"""

import json
import sys
import time

import celery
import celery.result
import celery.signals
import redis

WORKERS = 2
READY = "ready"  # the number of ready workers

app = celery.Celery("celery_calls")
app.conf.update(
    task_acks_late=True,  # otherwise an item is lost when its worker process dies
    task_reject_on_worker_lost=True,
)


@app.task
def double(number):
    return 2 * number


@celery.signals.worker_process_init.connect
def tell_ready(**_):
    redis.Redis.from_url(app.conf.broker_url).incr(READY)


def work():
    app.worker_main(["worker", "--concurrency", str(WORKERS), "--loglevel", "WARNING",
                     "--without-gossip", "--without-mingle", "--without-heartbeat"])


def timed_call(number):
    began = time.monotonic()
    check(number, double.delay(number).get())
    return time.monotonic() - began


def check(number, doubled):
    if doubled != 2 * number:
        sys.exit(f"the double of {number} is not {doubled}")


def call_all(callers):
    """Seconds from the start of all to each one's answer. One thread sends all and takes each answer
    as it comes: to wait for results on many threads is not supported."""
    began = time.monotonic()
    numbers = {}
    results = celery.result.ResultSet([])
    for number in range(callers):
        result = double.delay(number)
        numbers[result.id] = number
        results.add(result)
    took = []
    for task, meta in results.iter_native():
        check(numbers.pop(task), meta["result"])
        took.append(time.monotonic() - began)
    return took


def call(calls, callers):
    timed_call(0)
    took = [timed_call(number) for number in range(int(calls))]
    print(json.dumps({"one": took, "at_once": call_all(int(callers))}))


if __name__ == "__main__":
    verb, url, *arguments = sys.argv[1:]
    app.conf.broker_url = app.conf.result_backend = url
    if verb == "work":
        work()
    else:
        call(*arguments)
