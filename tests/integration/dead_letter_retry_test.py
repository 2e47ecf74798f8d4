# SPDX-License-Identifier: Apache-2.0
"""Items that died of a bug are retried with the mended handler, each record once, on `muster up`."""

import collections
import contextlib
import json
import os
import signal
import sqlite3
import time

import harness
from mesh import READY_SECONDS
from mesh_case import MeshTest
from up_test import OneProcess

JOB = """
name: deadly
input: {{format: lines}}
item: {{transactions: 10}}
handler: {{command: [python3, {program}], version: "{version}"}}
queue: {{max_attempts: 2}}
groups:
  - {{name: by_text, keys: [text], measures: {{lines: int}}}}
"""

# Version 1 kills itself on a line that says so.
PROGRAM = """
import collections, json, os, sys
for line in sys.stdin:
    item = json.loads(line)
    sums = collections.Counter(one["fields"][0] for one in item["transactions"])
    if sums["die"] and VERSION == 1:
        os.abort()
    rows = [{"text": text, "lines": lines} for text, lines in sums.items()]
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups": {"by_text": rows}}), flush=True)
"""

RECORDS = 100
DEADLY = [21, 22, 51, 52, 81, 82]  # too many of an item's ten for the others to be saved alone
DEAD_ITEMS = [2, 5, 8]


class DeadLetterRetryTest(MeshTest):
    def make_mesh(self):
        return OneProcess(self.folder)

    def setUp(self):
        super().setUp()
        self.texts = ["die" if line in DEADLY else f"text {line % 7}"
                      for line in range(1, RECORDS + 1)]
        self.data = self.write("in.txt", "\n".join(self.texts) + "\n")

    def apply(self, version):
        program = self.write(f"deadly{version}.py", PROGRAM.replace("VERSION", str(version)))
        self.answer("job", "apply",
                    self.write("job.yaml", JOB.format(program=program, version=version)))
        self.await_version(version)

    def await_version(self, version):
        """Until the initiator has heard that its processor has this one alone."""
        end = time.monotonic() + READY_SECONDS
        while [worker["handler_version"] for worker in self.answer("worker", "list", "--job", "deadly")
               ] != [str(version)]:
            self.assertLess(time.monotonic(), end, "no heartbeat says so")

    def submit_deadly(self, request_id="march"):
        """The number of a complete batch with three dead items."""
        done = self.muster(*self.submit_arguments("deadly", self.data, request_id))
        result = json.loads(done.stdout)
        self.assertEqual((result["complete"], result["aggregated"], result["dead_lettered"]),
                         (True, 70, 30), done.stderr)
        return result["batch"]

    def counted(self, where):
        """What the report's file has of the batches that `where` selects."""
        with contextlib.closing(sqlite3.connect(self.mesh.data_dir / "report.db")) as report:
            rows = report.execute(
                f"SELECT text, sum(lines) FROM by_text WHERE batch IN ({where}) GROUP BY text")
            return dict(rows.fetchall())

    def assert_each_record_counts_once(self, *batches):
        self.assertEqual(self.counted(", ".join(map(str, batches))),
                         dict(collections.Counter(self.texts)))

    def poison(self):
        return sum(queue["poison"] for queue in self.answer("queue", "list"))

    def test_items_that_died_of_a_bug_are_counted_by_the_next_version(self):
        self.apply(1)
        first = self.submit_deadly()
        receipt = self.ask("batch", "receipt", first).stdout
        self.apply(2)
        redrive = self.ask("queue", "redrive", "deadly-in-0")
        self.assertNotEqual(redrive.returncode, 0, "its batch is bound to version 1")
        self.assertIn(f"`muster batch retry {first} --all`", redrive.stderr)
        done = self.ask("batch", "retry", first, "--all", "--wait", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        [retry] = json.loads(done.stdout)["retries"]
        self.assertEqual((retry["transactions"], retry["is_new"], retry["outcome"]["aggregated"]),
                         (30, True, 30))
        second = retry["batch"]
        self.assert_each_record_counts_once(first, second)
        self.assertEqual(self.counted("SELECT batch FROM muster_current"),
                         dict(collections.Counter(self.texts)))

        again = self.ask("batch", "retry", first, "--all", "--wait")
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("nothing is left to retry", again.stderr)
        self.assertEqual(self.ask("batch", "receipt", first).stdout, receipt)
        view = self.answer("batch", "get", first)
        self.assertEqual((view["dead_lettered"], view["retried_in"]), (30, [second]))
        self.assertEqual(self.answer("batch", "get", second)["handler_version"], "2")
        dead = self.answer("batch", "dead-letters", first)
        self.assertEqual({(one["item"], one["retried_in"]) for one in dead},
                         {(item, second) for item in DEAD_ITEMS})
        self.assertEqual(self.poison(), 0, "nothing is left to do about them")

    def test_a_death_during_a_retry_doubles_nothing(self):
        self.apply(1)
        for failpoint in ("initiator.after_retry_claimed", "controller.after_rejections_claimed",
                          "controller.after_retry_recorded:1", "initiator.after_retry_submitted",
                          "controller.after_retry_recorded:2"):
            with self.subTest(failpoint=failpoint):
                first = self.submit_deadly(failpoint)
                self.apply(2)
                self.die_at(failpoint, first)
                redrive = self.ask("queue", "redrive", "deadly-in-0")
                self.assertNotIn("is open again", redrive.stdout)
                retries = self.answer("batch", "retry", first, "--item", 2, "--item", 5, "--item", 8,
                                      "--wait")["retries"]
                self.assertEqual([retry["transactions"] for retry in retries], [30])
                self.assert_each_record_counts_once(first, retries[0]["batch"])
                self.assertEqual(self.poison(), 0)
                self.apply(1)

    def die_at(self, failpoint, batch):
        up = self.mesh.up
        up.kill()
        os.environ["MUSTER_FAILPOINT"] = failpoint
        try:
            up.restart()
        finally:
            del os.environ["MUSTER_FAILPOINT"]
        self.assertNotEqual(self.ask("batch", "retry", batch, "--all").returncode, 0, failpoint)
        self.assertEqual(up.wait(), -signal.SIGKILL, failpoint)
        up.restart()
        self.await_version(2)


if __name__ == "__main__":
    harness.main()
