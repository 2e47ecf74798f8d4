# SPDX-License-Identifier: Apache-2.0
"""Two releases of muster side by side, while a batch is in progress.

Only one release exists here, so the tests imitate the other one. An item of a newer initiator is an
item of this initiator with added fields that this release does not know. next_processor is this
release's processor with another version of its linked handler. The environment sets the version of
fragile_processor's handler.
"""

import collections
import json
import os
import signal
import sqlite3
from unittest import mock

import harness
from harness import looks, retail_input
from mesh import READY_SECONDS, Mesh
from mesh_case import FREE_ITEMS, GATED, ROWS, ROWS_PER_ITEM, Gate, MeshTest
from nats_wire import NatsWire

# Fields 100, bytes, and 101, a number: of a WorkItem, or of any other form without such fields.
NEWER_FIELDS = b"\xa2\x06\x0afrom later\xa8\x06\x07"
QUEUE = "local/billing-in-0"


class ProcessorlessMesh(Mesh):
    def start_processors(self):
        return []


class RollingTest(MeshTest):
    def make_mesh(self):
        return ProcessorlessMesh(self.folder, self.nats_server, self.nats_servers)

    def start_processor(self, release):
        processor = self.mesh.start_role(release, None, "--threads", 1)
        processor.await_ready()
        return processor

    def reported(self, query, batch):
        report = sqlite3.connect(self.folder / "controller/report.db")
        try:
            return report.execute(query, (batch,)).fetchall()
        finally:
            report.close()

    def counted_items(self, batch):
        """Returns (attempts, handler version, worker) of each counted item."""
        return self.reported(
            "SELECT attempts, handler_version, worker FROM muster_items WHERE batch = ?", batch)

    def assert_counted_once_at_the_first_attempt(self, batch, items):
        counted = self.counted_items(batch)
        self.assertEqual(len(counted), items)
        self.assertEqual({attempts for attempts, _, _ in counted}, {1})
        query = "SELECT duplicates, conflicts FROM muster_batches WHERE batch = ?"
        self.assertEqual(self.reported(query, batch), [(0, 0)])

    def end_of(self, submission):
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, 0, errors)
        return json.loads(out)

    def await_queued(self, queue, items):
        """Waits until the queue holds so many. A paused listener may have given one back, which the
        server counts as in flight."""
        for _ in looks(READY_SECONDS):
            queues = {found["queue"]: found["ready"] + found["in_flight"] for found in self.answer("queue", "list")}
            if queues.get(queue) == items:
                return
        self.fail(f"{queue} never had {items} items: {queues}")

    def add_fields_to_every_other_item(self, queue):
        """Changes half of the items as if a newer initiator had put them. Returns their number."""
        stream = "MUSTER_" + queue.replace("/", "_")
        wire = NatsWire(self.mesh.nats_addresses[0])
        self.addCleanup(wire.close)
        chosen = wire.sequences(stream)[::2]
        for sequence in chosen:
            wire.replace(stream, sequence, lambda item: item + NEWER_FIELDS)
        changed = [wire.message(stream, sequence)[1] for sequence in
                   wire.sequences(stream)[-len(chosen):]]
        self.assertTrue(all(item.endswith(NEWER_FIELDS) for item in changed))
        return len(chosen)


class SideBySideTest(RollingTest):
    ITEMS = ROWS // ROWS_PER_ITEM

    def test_old_and_new_share_a_queue_and_the_old_one_leaves_in_the_middle(self):
        gate = Gate(self.folder / "gate")
        self.addCleanup(gate.open)
        self.apply_billing(self.write("gated.py", GATED), gate.path, visibility="5m")
        data = retail_input(ROWS)
        submission = self.start_submit("billing", data)
        self.await_queued(QUEUE, self.ITEMS)
        newer = self.add_fields_to_every_other_item(QUEUE)
        self.assertEqual(newer, self.ITEMS // 2)

        old = self.start_processor("processor")
        new = self.start_processor("next_processor")
        # The changed items stand behind the others, and each processor holds one of them at the
        # gate.
        self.await_batch(1, lambda batch: batch["items_counted"] == FREE_ITEMS // 2)
        self.await_busy(2)
        old.signal(signal.SIGTERM)
        old.await_line("msg=draining")
        gate.open()
        self.assertEqual(old.wait(), 0)
        result = self.end_of(submission)
        self.assert_exact(data, ROWS, result)
        # The old processor's items that had not begun went to the new one at once and were charged
        # no attempt: their leases would have lasted for minutes.
        self.assert_counted_once_at_the_first_attempt(1, self.ITEMS)
        workers = {worker for _, _, worker in self.counted_items(1)}
        self.assertEqual(len(workers), 2, "both had a part in it")
        self.assertEqual(new.stop(), 0)


class HandlerVersionTest(RollingTest):
    ROWS = 2000
    ITEMS = 4  # of 500 transactions each

    def test_each_version_gets_its_items_while_both_are_there(self):
        self.answer("job", "apply", harness.RETAIL_JOB)
        data = retail_input(self.ROWS)
        old = self.start_processor("processor")
        self.await_handler("1")
        self.assertEqual(self.ask("worker", "pause", "--all").returncode, 0)
        first = self.start_submit("retail", data)
        self.await_queued("local/retail-in-0", self.ITEMS)
        self.assertEqual(old.stop(), 0)

        # No processor fits the first batch now. A new submission is bound to the new version.
        new = self.start_processor("next_processor")
        new.await_line("no fitting worker for the items of a batch")
        new.await_line("handler version 1")
        self.await_handler("2")
        later = self.submit("retail", data, "april")
        self.assert_exact(data, self.ROWS, later)
        [waiting] = [b for b in self.answer("batch", "list") if b["batch"] == 1]
        self.assertEqual(waiting["items_counted"], 0)
        self.assertEqual(self.ask("worker", "pause", "--all").returncode, 0)
        last = self.start_submit("retail", data, request_id="may")
        self.await_queued("local/retail-in-0", 2 * self.ITEMS)  # with those of the first batch

        # From here on both processors run, with items of both versions in their queue. While the
        # new one is paused, the old one takes the items of the last batch and puts them back.
        old.restart()
        old.await_line("handler version 2")
        self.assertEqual(self.ask("worker", "resume").returncode, 0)
        results = [self.end_of(first), later, self.end_of(last)]
        for result, version in zip(results, ("1", "2", "2")):
            self.assert_exact(data, self.ROWS, result)
            self.assert_counted_once_at_the_first_attempt(result["batch"], self.ITEMS)
            counted = self.counted_items(result["batch"])
            self.assertEqual({v for _, v, _ in counted}, {version})

    def await_handler(self, version):
        for _ in looks(READY_SECONDS):
            workers = self.answer("worker", "list")
            live = [worker for worker in workers if worker["phase"] != "leaving"]
            if [worker["handler_version"] for worker in live] == [version]:
                return
        self.fail(f"no handler of version {version}: {workers}")


class MixedVersionsTest(RollingTest):
    """A batch that is bound to no version, because no processor ran that could state one."""

    ITEMS = 40  # more than a processor claims at a time
    LINES_PER_ITEM = 10
    JOB = f"""
name: fragile
input: {{format: lines}}
item: {{transactions: {LINES_PER_ITEM}}}
handler: {{linked: fragile}}
queue: {{visibility: 5m}}
groups:
  - {{name: by_text, keys: [text], measures: {{lines: int}}}}
"""

    def start_version(self, version):
        with mock.patch.dict(os.environ, FRAGILE_VERSION=version, FRAGILE_GATE=str(self.gate.path)):
            return self.start_processor("fragile_processor")

    def make_lines(self):
        """Writes items that wait at the gate, behind FREE_ITEMS that do not."""
        lines = [f"text {i % 7}" for i in range(self.ITEMS * self.LINES_PER_ITEM)]
        for item in range(FREE_ITEMS, self.ITEMS):
            lines[item * self.LINES_PER_ITEM] = "wait"
        return lines

    def test_the_receipt_counts_the_items_of_each_version_that_worked_on_the_batch(self):
        self.gate = Gate(self.folder / "gate")
        self.addCleanup(self.gate.open)
        self.answer("job", "apply", self.write("job.yaml", self.JOB))
        lines = self.make_lines()
        submission = self.start_submit("fragile", self.write("in.txt", "\n".join(lines) + "\n"))
        self.await_queued("local/fragile-in-0", self.ITEMS)

        # Each processor has an item at the gate, so each works on some of them.
        self.start_version("1")
        self.await_batch(1, lambda batch: batch["items_counted"] == FREE_ITEMS)
        self.start_version("2.0 beta")
        self.await_busy(2)
        self.gate.open()
        self.assertTrue(self.end_of(submission)["complete"])

        [group] = self.report(1)["groups"]
        self.assertEqual({row["text"]: int(row["lines"]) for row in group["rows"]},
                         dict(collections.Counter(lines)))
        self.assert_counted_once_at_the_first_attempt(1, self.ITEMS)
        self.assert_receipt_is_complete(1, len(lines))
        self.assert_receipt_tells_the_versions({"1", "2.0 beta"})

    def assert_receipt_tells_the_versions(self, versions):
        receipt = self.answer("batch", "receipt", 1)
        told = {version: int(items) for version, items in receipt["items_by_version"].items()}
        self.assertEqual(set(told), versions)
        self.assertGreater(min(told.values()), 0)
        self.assertEqual(sum(told.values()), self.ITEMS)
        counted = collections.Counter(version for _, version, _ in self.counted_items(1))
        self.assertEqual(told, dict(counted))
        lines = self.ask("batch", "receipt", 1).stdout.splitlines()
        for version, items in told.items():
            self.assertIn(f"items_by_version {items} {version}", lines)
        self.assertIn("handler_version ", lines)


if __name__ == "__main__":
    harness.main()
