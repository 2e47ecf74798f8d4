# SPDX-License-Identifier: Apache-2.0
"""One bad transaction among many, on a mesh: its cost for its item and for the others.

On JetStream the first attempts of all claimed items begin together, by one note: when an item kills a
processor, its neighbours are suspects, too, and must not pay for it.
"""

import collections
import contextlib
import json
import os
import select
import signal
import sqlite3
import time

import harness
from mesh import NATS_SERVERS, READY_SECONDS, Mesh
from mesh_case import MeshTest
from poison_test import JOB, PROGRAM


class FragileMesh(Mesh):
    def start_processors(self):
        return [self.start_role("fragile_processor", None, "--threads", 1) for _ in range(2)]


class PoisonOnMeshTest(MeshTest):
    def make_mesh(self):
        return FragileMesh(self.folder, self.nats_server, self.nats_servers)

    def apply(self, handler, transactions):
        text = JOB.format(handler=handler, transactions=transactions)
        lease = f"queue: {{visibility: {Mesh.LEASE_SECONDS}s, "
        self.answer("job", "apply", self.write("job.yaml", text.replace("queue: {", lease)))

    def lines(self, count, bad_line):
        """Writes `count` lines, of which line `bad_line` (from 1) aborts."""
        self.texts = [f"text {i % 7}" for i in range(count)]
        self.texts[bad_line - 1] = "abort"
        return self.write("in.txt", "\n".join(self.texts) + "\n")

    def await_death(self):
        """Waits for a processor to die, and returns it."""
        handles = {os.pidfd_open(processor.process.pid): processor
                   for processor in self.mesh.processors}
        try:
            dead, _, _ = select.select(list(handles), [], [], READY_SECONDS)
            self.assertEqual(len(dead), 1, "one processor ends")
            return handles[dead[0]]
        finally:
            for handle in handles:
                os.close(handle)

    def end_of(self, submission):
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, 3, errors)
        return json.loads(out)

    def reported(self, query):
        with contextlib.closing(sqlite3.connect(self.folder / "controller/report.db")) as report:
            return report.execute(query).fetchall()

    def assert_the_sum_of_all_but_the_bad_line(self, batch):
        [group] = self.report(batch)["groups"]
        expected = collections.Counter(text for text in self.texts if text != "abort")
        self.assertEqual({row["text"]: int(row["lines"]) for row in group["rows"]}, dict(expected))

    def test_an_abort_in_a_linked_handler_costs_its_item_alone(self):
        data = self.lines(10000, 6001)
        self.apply("{linked: fragile}", transactions=1)
        submission = self.start_submit("fragile", data)
        dead = self.await_death()
        self.assertEqual(dead.wait(), -signal.SIGABRT)
        # A processor that is not idle then finds the dead one's items.
        time.sleep(Mesh.LEASE_SECONDS + 0.5)
        dead.restart()
        result = self.end_of(submission)
        self.assertEqual((result["items"], result["aggregated"], result["dead_lettered"]),
                         (10000, 9999, 1))
        self.assert_the_sum_of_all_but_the_bad_line(result["batch"])
        self.assertEqual(
            self.reported('SELECT item, outcome FROM muster_items WHERE outcome <> \'aggregated\''),
            [(6000, "dead-lettered")])
        self.assertEqual(
            self.reported("SELECT DISTINCT attempts FROM muster_items WHERE outcome = 'aggregated'"),
            [(1,)], "no neighbour is charged")
        [poison] = self.answer("queue", "poison", "local/fragile-in-0")
        self.assertIn("signal 6 (Aborted)", poison["cause"])
        self.assertIn("about to abort", poison["cause"])
        living = [processor.process.poll() for processor in self.mesh.processors]
        self.assertEqual(living, [None, None], "it kills no second processor")

    def test_an_abort_in_a_command_handler_costs_its_transaction_alone(self):
        program = self.write("program.py", PROGRAM)
        data = self.lines(10000, 7777)
        self.apply(f"{{command: [python3, {program}]}}", transactions=2)
        result = self.end_of(self.start_submit("fragile", data))
        self.assertEqual((result["items"], result["aggregated"], result["rejected"],
                          result["dead_lettered"]), (5000, 9999, 1, 0))
        self.assert_the_sum_of_all_but_the_bad_line(result["batch"])
        [(line, reason)] = self.reported("SELECT line, reason FROM muster_rejections")
        self.assertEqual(line, 7777)
        self.assertIn("signal 6 (Aborted)", reason)
        self.assertEqual(
            self.reported('SELECT item, attempts FROM muster_items WHERE attempts <> 1'),
            [(3888, 3)], "the item is tried three times, its neighbours once")


class PoisonOnOtherServerTest(PoisonOnMeshTest):
    """The same tests on the last server, because servers differ."""

    nats_server = NATS_SERVERS[-1]

    def setUp(self):
        if len(NATS_SERVERS) == 1:
            self.skipTest("MUSTER_NATS_SERVERS names one server only")
        super().setUp()


if __name__ == "__main__":
    harness.main()
