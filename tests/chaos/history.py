# SPDX-License-Identifier: Apache-2.0
"""The record of one run: what clients did and saw, what was done to the mesh, and what it came to.

A line of JSON for each event. `at` is the machine's monotonic clock in seconds, which all of its
processes share. The driver writes the file, and only checker.py judges it.

    content      a batch that will be submitted: request, kind, padding of its lines, items (the lines of
                 each)
    submit       a client begins to submit a request; refused, if it was turned away, and unanswered,
                 if it does not know what became of it
    acknowledged a client was told the number of its batch
    cancel       a client begins to cancel; cancelled, when it was told that the batch is
    redriven     poison messages were given another chance
    put          an item's message passed on its way to an input queue
    attempted    a handler began an item
    committed    a batch's counts in the report, when they changed
    receipt      a receipt in the report, when it was new
    seen         a batch as an initiator tells it, when it changed
    fault        begin or end of a fault
    ended        a program that nothing had ended
    end_*        the state at the end, after all was healed
"""

import json
import threading
import time


class History:
    """Writes events. Thread-safe."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        # Each event is on its way to the disk before the next action: a driver that dies leaves a
        # history that ends, not one with holes.
        self.file = open(path, "w", encoding="utf-8", buffering=1)

    def record(self, what, at=None, **fields):
        event = {"at": round(time.monotonic() if at is None else at, 4), "what": what, **fields}
        with self.lock:
            self.file.write(json.dumps(event) + "\n")

    def close(self):
        with self.lock:
            self.file.close()


def read(path):
    """Returns the events of a history, oldest first."""
    with open(path, encoding="utf-8") as file:
        events = [json.loads(line) for line in file if line.endswith("\n")]
    return sorted(events, key=lambda event: event["at"])
