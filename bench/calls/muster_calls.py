#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""muster's side of bench/calls/call_bench, with the package of clients/python on the path.

    muster_calls.py work ADDRESS                        the handler, until SIGTERM
    muster_calls.py call SERVER JOB_FILE CALLS CALLERS  prints what each call took, as a line of JSON
"""

import json
import pathlib
import signal
import sys
import threading
import time

import muster

WORKERS = 2
CLIENTS = 4  # a connection takes 256 calls at a time
START_SECONDS = 30


def double(item, results):
    for transaction in item.transactions:
        results.output(transaction.line, {"double": 2 * int(transaction["number"])})
        results.add({"all": muster.Row({"all": "all"}, {"numbers": 1})})


def work(address):
    server = muster.serve_handler(double, version="1", listen=address, concurrency=WORKERS)
    signal.sigwait({signal.SIGTERM})
    server.stop(0)


def timed_call(client, number):
    began = time.monotonic()
    answer = client.call("double", {"number": number}, timeout=START_SECONDS)
    if answer.outputs[0]["double"] != 2 * number:
        sys.exit(f"the double of {number} is not {answer}")
    return time.monotonic() - began


def call_all(clients, callers):
    """Seconds from the start of all to each one's answer."""
    together = threading.Barrier(callers + 1)
    took = [0.0] * callers

    def run(number):
        together.wait()
        timed_call(clients[number % CLIENTS], number)
        took[number] = time.monotonic() - began

    threads = [threading.Thread(target=run, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    together.wait()
    for thread in threads:
        thread.join()
    return took


def call(server, job_file, calls, callers):
    clients = [muster.Client(server, timeout=START_SECONDS) for _ in range(CLIENTS)]
    clients[0].apply_job(pathlib.Path(job_file).read_text(encoding="utf-8"))
    for client in clients:
        timed_call(client, 0)
    took = [timed_call(clients[0], number) for number in range(int(calls))]
    print(json.dumps({"one": took, "at_once": call_all(clients, int(callers))}))


if __name__ == "__main__":
    verb, *arguments = sys.argv[1:]
    if verb == "work":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    {"work": work, "call": call}[verb](*arguments)
