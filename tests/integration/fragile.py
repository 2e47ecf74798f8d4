# SPDX-License-Identifier: Apache-2.0
"""A batch whose totals are known without muster, and a muster that dies where a test tells it to.

FragileTest runs fragile_muster, whose handler (fragile_handler.cc) does what lines say; the
environment's MUSTER_FAILPOINT (muster/base/failpoint.h) tells it where to die.
"""

import collections
import functools
import json
import os
import random
import signal
import subprocess

import harness
from harness import MusterTest

FRAGILE = os.environ["FRAGILE_MUSTER"]

LINES_PER_ITEM = 30
ITEMS = 100  # more than one run of the initiator
KEY_BYTES = 8  # of a line, by which the handler counts
# Special items: one wants a second attempt, one is given up, one is too large for a message.
RETRIED, GIVEN_UP, LARGE = 7, 13, 4

JOB = f"""
name: fragile
input: {{format: lines}}
item: {{transactions: {LINES_PER_ITEM}, max_bytes: 4MiB}}
handler: {{linked: fragile}}
queue: {{max_attempts: 5, partitions: 2, content: inline}}
groups:
  - {{name: by_text, keys: [text], measures: {{lines: int}}}}
"""

def lines_of(item):
    if item == LARGE:
        noise = random.Random(item)
        return [f"noise {i % 7} {noise.randbytes(30000).hex()}" for i in range(LINES_PER_ITEM)]
    lines = [f"text {item * LINES_PER_ITEM + i}" for i in range(LINES_PER_ITEM)]
    special = {RETRIED: "retry", GIVEN_UP: "dead"}.get(item)
    return lines[:5] + [special] + lines[6:] if special else lines


@functools.lru_cache(maxsize=None)
def big_input():
    """An input of all items, made once."""
    path = harness.folder_of_program("muster-input-") / "in.txt"
    path.write_text("".join(line + "\n" for item in range(ITEMS) for line in lines_of(item)))
    return path


def direct_sum(items):
    return collections.Counter(line[:KEY_BYTES] for item in items for line in lines_of(item))


def flip_a_byte(path, where):
    """Changes a bit of the byte that lies at the share `where` of a file."""
    with path.open("r+b") as file:
        at = int(path.stat().st_size * where)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


class FragileTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.job = self.write("job.yaml", JOB)
        self.batch_input = big_input()

    def fragile(self, *arguments, failpoint="", mended=False):
        environment = dict(os.environ, MUSTER_FAILPOINT=failpoint)
        if mended:
            environment["FRAGILE_MENDED"] = "yes"
        return subprocess.run([FRAGILE, *map(str, arguments)], capture_output=True, text=True,
                              timeout=harness.TIMEOUT_SECONDS, env=environment, cwd=self.folder)

    def run_batch(self, **how):
        return self.fragile(*self.run_arguments(self.batch_input, "--threads", 2, "--quiet",
                                                job=self.job), **how)

    def redrive(self, **how):
        for partition in range(2):
            done = self.fragile("queue", "redrive", f"fragile-in-{partition}", "--data-dir",
                                self.data_dir, **how)
            if done.returncode != 0:
                return done
        return done

    def check(self, *more, **how):
        return self.fragile("check", *more, "--data-dir", self.data_dir, **how)

    def die_with_everything_in_tables(self):
        """Dies in mid-batch, and again after the replay has moved the logs into tables."""
        self.assert_died(self.run_batch(failpoint="controller.before_commit"), "mid-batch")
        self.assert_died(self.run_batch(failpoint="run.after_open"), "after the replay")

    def assert_died(self, done, failpoint):
        self.assertEqual(done.returncode, -signal.SIGKILL,
                         f"did not die at {failpoint}: {done.stdout}{done.stderr}")

    def assert_exact(self, done, expected_code, dead_items):
        """Asserts that the run ended and every total equals the direct sum."""
        self.assertEqual(done.returncode, expected_code, done.stderr)
        result = json.loads(done.stdout)
        counted = direct_sum(set(range(ITEMS)) - set(dead_items))
        self.assertEqual(
            (result["transactions"], result["aggregated"], result["rejected"],
             result["dead_lettered"], result["items"]),
            (ITEMS * LINES_PER_ITEM, counted.total(), 0, LINES_PER_ITEM * len(dead_items), ITEMS))
        rows = {row["text"]: int(row["lines"]) for row in self.rows(result["batch"], "by_text")}
        self.assertEqual(rows, dict(counted))
        self.assert_receipt_holds(result["batch"])
