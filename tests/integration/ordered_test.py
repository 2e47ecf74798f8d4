# SPDX-License-Identifier: Apache-2.0
"""Jobs with order_by: the calls of the handler for each key, as the handler has written them down."""

import json
import os
import random
import subprocess
import tempfile
import sys
import time

import harness
from harness import MusterTest
from mesh import NATS_SERVERS, READY_SECONDS, Mesh
from mesh_case import MeshTest

SEED = int(os.environ.get("MUSTER_TEST_SEED", "0")) or random.randrange(1, 1 << 32)

JOB = """
name: payments
input: {{format: csv, columns: [key, n]}}
item: {{transactions: {transactions}}}
order_by: key
handler: {{linked: witness}}
queue: {{partitions: {partitions}, max_attempts: 6}}
groups:
  - {{name: total, keys: [all], measures: {{lines: int}}}}
"""


class Calls:
    """The calls of the handler, in the order in which they were made, over all processes."""

    def __init__(self, path):
        with open(path, encoding="ascii") as log:
            self.lines = [line.split() for line in log]

    def check(self, last_n, dead, skipped):
        """Holds the calls to the order of each key. `last_n`: by key, its last number; `dead`: processes
        that were killed; `skipped`: by key, a number that was given up for good."""
        done = {}  # by key: the number that comes next
        running = {}  # by key: (first, last, pid) of the call that has begun and not ended
        # By key: the item that was begun last, which may come again. The last attempt at it is a call
        # for each of its transactions.
        begun = {}
        mistakes = []
        for what, key, first, last, pid, *how in self.lines:
            item = (int(first), int(last))
            if what == "B":
                if key in running and running[key][2] not in dead:
                    mistakes.append(f"{key}: {item} begins beside {running[key]}")
                whole = begun.get(key, item)
                # The next one may begin once it was tried.
                if key in begun and done.get(key, 0) == skipped.get(key) == item[0] - 1:
                    done[key] = item[0]
                within = whole[0] <= item[0] and item[1] <= whole[1]
                if item[0] != done.get(key, 0) and not (within and item[0] == whole[0]):
                    mistakes.append(f"{key}: {item} begins, {done.get(key, 0)} is next")
                begun[key] = whole if within else item
                running[key] = (*item, int(pid))
            else:
                running.pop(key, None)
                if how == ["ok"]:
                    done[key] = item[1] + 1
        for key, last in last_n.items():
            if done.get(key, 0) == skipped.get(key) == last:
                continue
            if done.get(key, 0) != last + 1:
                mistakes.append(f"{key} ends at {done.get(key, 0)} of {last + 1}")
        return mistakes


class OrderedCase(MusterTest):
    def setUp(self):
        self.random = random.Random(SEED)
        self.log_path = self.make_log_path()
        super().setUp()

    def make_log_path(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "calls")
        os.environ["WITNESS_LOG"] = path
        os.environ["WITNESS_FAILS"] = "5"
        os.environ.pop("WITNESS_POISON", None)
        return path

    def content(self, name, keys, first_n, each):
        """A CSV in which the lines of all keys are mixed, and each key's in order."""
        order = [key for key in range(keys) for _ in range(each)]
        self.random.shuffle(order)
        next_n = dict.fromkeys(range(keys), first_n)
        lines = ["key,n"]
        for key in order:
            lines.append(f"k{key},{next_n[key]}")
            next_n[key] += 1
        return self.write(name, "\n".join(lines) + "\n")

    def assert_order(self, last_n, dead=()):
        mistakes = Calls(self.log_path).check(last_n, set(dead), {})
        self.assertEqual(mistakes[:20], [], f"seed {SEED}, {len(mistakes)} mistakes")


class OrderedRunTest(OrderedCase):
    def run_ordered(self, data, threads=4, kill_after=None):
        job = self.write("payments.yaml", JOB.format(transactions=3, partitions=4))
        process = subprocess.Popen(
            [os.environ["FRAGILE_MUSTER"], "run", str(job), "--input", str(data), "--data-dir",
             str(self.folder / "data"), "--threads", str(threads), "-o", "json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if kill_after is not None:
            self.await_calls(kill_after)
            process.kill()
        out, errors = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        return process, out, errors

    def await_calls(self, count):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            if os.path.exists(self.log_path):
                with open(self.log_path, encoding="ascii") as log:
                    if sum(1 for _ in log) >= count:
                        return
            time.sleep(0.01)
        self.fail("the handler is not called")

    def test_a_run_keeps_the_order_of_each_key(self):
        process, out, errors = self.run_ordered(self.content("in.csv", 500, 0, 10))
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(json.loads(out)["aggregated"], 5000)
        self.assert_order({f"k{key}": 9 for key in range(500)})

    def test_a_run_that_is_killed_goes_on_in_order(self):
        data = self.content("in.csv", 300, 0, 10)
        dead = []
        for calls in (200, 900, 1500):
            process, _, _ = self.run_ordered(data, kill_after=calls)
            dead.append(process.pid)
        process, out, errors = self.run_ordered(data)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(json.loads(out)["aggregated"], 3000)
        self.assert_order({f"k{key}": 9 for key in range(300)}, dead)


class OrderedMeshTest(OrderedCase, MeshTest):
    KEYS = 100_000

    def make_mesh(self):
        mesh = Mesh(self.folder, self.nats_server, self.nats_servers)
        mesh.start_processors = lambda: [self.start_processor(mesh) for _ in range(3)]
        return mesh

    @staticmethod
    def start_processor(mesh):
        return mesh.start_role("fragile_processor", None, "--threads", 2)

    def counted(self, batch):
        [found] = [b for b in self.answer("batch", "list") if b["batch"] == batch]
        return found["aggregated"]

    def await_counted(self, batch, at_least):
        end = time.monotonic() + harness.TIMEOUT_SECONDS
        while self.counted(batch) < at_least:
            self.assertLess(time.monotonic(), end, "the batch does not go on")
            time.sleep(0.1)

    def test_the_order_of_100000_keys_outlasts_failures_kills_and_joins(self):
        self.answer("job", "apply", self.write("payments.yaml",
                                               JOB.format(transactions=3, partitions=6)))
        first = self.content("first.csv", self.KEYS, 0, 2)
        second = self.content("second.csv", 2000, 2, 8)
        submissions = [self.start_submit("payments", first, request_id="first")]
        self.await_batch(1, lambda batch: True)
        # The second batch has some of the keys again: its items come after those of the first.
        submissions.append(self.start_submit("payments", second, request_id="second"))
        dead = []
        for share in (0.2, 0.6):
            self.await_counted(1, share * 2 * self.KEYS)
            victim = self.random.choice(self.mesh.processors)
            dead.append(victim.process.pid)
            victim.kill()
            victim.restart()
        results = []
        for submission in submissions:
            out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
            self.assertEqual(submission.returncode, 0, errors)
            results.append(json.loads(out))
        self.assertEqual([result["aggregated"] for result in results], [2 * self.KEYS, 16000])
        self.assertEqual([result["dead_lettered"] for result in results], [0, 0])
        self.assert_order({f"k{key}": 9 if key < 2000 else 1 for key in range(self.KEYS)}, dead)


class OrderedOtherServerTest(OrderedMeshTest):
    """The same test on the last server, with fewer keys, because servers differ."""

    nats_server = NATS_SERVERS[-1]
    KEYS = 20_000

    def setUp(self):
        if len(NATS_SERVERS) == 1:
            self.skipTest("MUSTER_NATS_SERVERS names one server only")
        super().setUp()


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    harness.main()
