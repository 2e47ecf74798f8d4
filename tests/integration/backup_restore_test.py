# SPDX-License-Identifier: Apache-2.0
"""The drill of docs/operations/backup.md: back up every store of a mesh, destroy the mesh, restore it.

Each test has a batch that is done and one in mid-work. It takes its copies by the commands of the page,
at one moment or at several, and compares every total and both receipts after the restore. The tests
of copies of different moments show the rule that keeps such a restore exact; those that are expected to
fail show what it costs without the rule.
"""

import json
import shutil
import signal
import sqlite3
import subprocess
import unittest

import harness
from harness import ROOT, retail_input
from mesh import NATS_SERVERS, Mesh, Program
from mesh_case import ROWS, ROWS_PER_ITEM, MeshTest
from nats_snapshot import restore_stream, take_stream

ITEMS = ROWS // ROWS_PER_ITEM

# Bills like the retail job, but each item waits until the level in a file is above its index.
STEPPED = f'''
import json, sys, time
sys.path.insert(0, {str(ROOT / "examples/retail")!r})
import bill

def stepped(lines):
    for line in lines:
        index = int(json.loads(line)["item"].split(":")[0].split("/")[1])  # "BATCH/ITEM:ATTEMPT"
        while index >= int(open(sys.argv[1]).read()):
            time.sleep(0.02)
        yield line

sys.stdin = stepped(sys.stdin)
bill.main()
'''


class DrillTest(MeshTest):
    """A mesh with batch 1, which is done, and batch 2, of which five items are counted."""

    STORES = ("initiator", "controller", "nats0")  # folders

    def make_mesh(self):
        mesh = super().make_mesh()
        mesh.role_options = ["--drain-grace", "1s"]
        return mesh

    def setUp(self):
        super().setUp()
        self.stores = {name: self.folder / name for name in self.STORES}
        self.backup = self.folder / "backup"
        self.backup.mkdir()
        self.level = self.write("level", "0")
        self.addCleanup(self.let_work, ITEMS)  # before the mesh is killed: programs end
        self.done_data = retail_input(1500)
        self.data = retail_input(ROWS)
        self.apply_billing(name="plain")
        self.done = self.submit("plain", self.done_data, "february")
        self.assert_exact(self.done_data, 1500, self.done)
        self.receipt = self.receipt_of(self.done["batch"])
        self.apply_billing(self.write("stepped.py", STEPPED), self.level, name="billing")
        done = self.ask("batch", "submit", "billing", "--input", self.data, "--request-id", "march",
                        "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.open = json.loads(done.stdout)["batch"]
        self.await_batch(self.open, lambda batch: batch["state"] == "sealed")
        self.work_to(5)

    def receipt_of(self, batch):
        done = self.ask("batch", "receipt", batch)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def let_work(self, items):
        """Replaces the file at once: programs read it meanwhile."""
        new = self.write("level.new", str(items))
        new.rename(self.level)

    def work_to(self, items):
        """Returns when this many items of the open batch are counted, and no more can be."""
        self.let_work(items)
        self.await_batch(self.open, lambda batch: batch["items_counted"] == items)

    # The commands of docs/operations/backup.md.

    def copy(self, store):
        """A copy of a store whose service is stopped, or frozen: the snapshot of a volume."""
        subprocess.run(["cp", "-a", self.stores[store], self.backup / store], check=True)

    def snapshot(self, store, program):
        program.freeze()
        try:
            self.copy(store)
        finally:
            program.thaw()

    def snapshot_initiator(self):
        self.snapshot("initiator", self.mesh.initiator)

    def snapshot_nats(self):
        self.snapshot("nats0", self.mesh.nats)

    def copy_report(self):
        """Of the running controller."""
        (self.backup / "controller").mkdir()
        subprocess.run(["sqlite3", self.stores["controller"] / "report.db",
                        f".backup {self.backup / 'controller/report.db'}"], check=True)

    def join_books(self):
        """The initiator's copy with the report beside its ledger, as muster check wants them."""
        books = self.backup / "initiator"
        for file in (self.backup / "controller").glob("report.db*"):
            shutil.move(file, books)
        return books

    def check(self, *more):
        """Joins the books; returns what muster check finds in them, {batch: why} of the report's batches.
        That they have no batch numbers is no damage: a mesh has these on its NATS server."""
        done = self.muster("check", *more, "--data-dir", self.join_books(), "-o", "json")
        found = json.loads(done.stdout)
        batches = {damage["name"]: damage["why"] for damage in found["damaged"]
                   if (damage["part"], damage["kind"]) == ("report", "batch")}
        others = [damage for damage in found["damaged"]
                  if damage["name"] not in (*batches, "key 'batch-numbers'")]
        self.assertEqual(others, [], done.stderr)
        return batches

    def part_books(self):
        """Puts the report back, and takes away what a repair has made for its batch numbers."""
        for file in (self.backup / "initiator").glob("report.db*"):
            shutil.move(file, self.backup / "controller")
        shutil.rmtree(self.backup / "initiator/sync", ignore_errors=True)

    def destroy(self):
        for program in self.mesh.programs:
            if program.process.poll() is None:
                program.signal(signal.SIGKILL)
        for program in self.mesh.programs:
            program.wait()
        for folder in self.stores.values():
            shutil.rmtree(folder)

    def restore(self):
        for name, folder in self.stores.items():
            if (self.backup / name).exists():
                subprocess.run(["cp", "-a", self.backup / name, folder], check=True)

    def start_again(self):
        if self.mesh.nats.process.poll() is not None:
            self.mesh.nats.restart()
        for program in self.mesh.programs:
            if program is not self.mesh.nats:
                program.start()
        for program in self.mesh.programs:
            if program is not self.mesh.nats:
                program.await_ready()

    # What must hold afterwards.

    def assert_done_is_as_it_was(self):
        self.assertEqual(self.receipt_of(self.done["batch"]), self.receipt)
        self.assert_report_is_the_direct_sum(self.done_data, self.done["batch"])
        # The same request is the same batch.
        self.assertEqual(self.submit("plain", self.done_data, "february")["batch"], self.done["batch"])

    def assert_open_ends_exactly(self):
        self.let_work(ITEMS)
        result = self.submit("billing", self.data)
        self.assertEqual(result["batch"], self.open)
        self.assert_exact(self.data, ROWS, result)

    def assert_exact_again(self):
        self.assert_done_is_as_it_was()
        self.assert_open_ends_exactly()

    def submit_next(self, request_id="april", price="0.1"):
        """A batch after the restore, exact; returns its number."""
        data = self.retail_rows((3, price, "7", "France"), name=f"{request_id}.csv")
        result = self.submit("plain", data, request_id)
        self.assert_exact(data, 1, result)
        return result["batch"]


class OneMomentTest(DrillTest):
    def test_all_stores_of_a_stopped_mesh(self):
        for program in (self.mesh.initiator, self.mesh.controller, *self.mesh.processors):
            self.assertEqual(program.stop(), 0)
        self.mesh.nats.stop()
        for store in self.stores:
            self.copy(store)
        self.assertEqual(self.check(), {})
        self.part_books()
        self.destroy()
        self.restore()
        self.start_again()
        self.assert_exact_again()
        # The initiator draws ten numbers at a time, and forgets those that it did not use.
        self.assertEqual(self.submit_next(), 11)

    def test_the_books_alone_with_an_empty_nats_server(self):
        for program in (self.mesh.initiator, self.mesh.controller):
            self.assertEqual(program.stop(), 0)
        for store in ("initiator", "controller"):
            self.copy(store)
        self.destroy()
        self.restore()
        self.start_again()
        self.assert_exact_again()
        # The counter is lost: numbers go on where none can have been.
        self.assertGreater(self.submit_next(), 200_000_000)
        self.assertEqual(sorted(job["job"] for job in self.answer("job", "list")),
                         ["billing", "plain"])


class RunningTest(DrillTest):
    """Copies of a mesh at work, in the order of the page: initiator, report, NATS."""

    def test_copies_in_order_while_work_goes_on(self):
        self.snapshot_initiator()
        self.work_to(15)
        self.copy_report()
        self.work_to(25)
        self.snapshot_nats()
        self.destroy()
        self.restore()
        self.start_again()
        self.assert_exact_again()


class MismatchTest(DrillTest):
    """Copies of different moments, in another order."""

    def restore_as_it_is(self):
        self.destroy()
        self.restore()
        self.start_again()

    def restore_repaired(self, wrong):
        """Restores after a repair of the books, which finds and mends just what is `wrong`."""
        self.assertEqual(self.check(), wrong)
        self.assertEqual(self.check("--repair"), wrong)
        self.assertEqual(self.check(), {})
        self.part_books()
        self.restore_as_it_is()

    def test_a_report_older_than_the_queues_has_what_it_lacks_counted_again(self):
        self.copy_report()
        self.work_to(25)
        self.snapshot_initiator()
        self.snapshot_nats()
        self.restore_as_it_is()
        self.assert_exact_again()

    def test_queues_older_than_the_report_count_nothing_twice(self):
        self.snapshot_nats()
        self.work_to(25)
        self.snapshot_initiator()
        self.copy_report()
        self.restore_as_it_is()
        self.assert_exact_again()

    # A report that is older than the ledger lacks items of a batch that the ledger calls complete.

    def copy_a_report_without_the_end_of_a_batch(self):
        self.copy_report()
        self.let_work(ITEMS)
        self.submit("billing", self.data)
        self.snapshot_initiator()
        self.snapshot_nats()

    def test_a_repair_has_a_complete_batch_counted_to_its_end_that_the_report_lacks(self):
        self.copy_a_report_without_the_end_of_a_batch()
        self.restore_repaired({f"batch {self.open}": "it has 5 of the 40 items that the ledger has as counted"})
        self.assert_exact_again()

    @unittest.expectedFailure  # "complete" with 500 of 4000 transactions, without a receipt
    def test_without_a_repair_such_a_batch_is_exact(self):
        self.copy_a_report_without_the_end_of_a_batch()
        self.restore_as_it_is()
        self.assert_exact_again()

    # A ledger that is older than the report lacks batches that the report has counted.

    def submit_later(self, request_id):
        data = self.retail_rows((3, "0.5", "later", "France"), name=f"{request_id}.csv")
        return self.submit("plain", data, request_id)["batch"]

    def revenue_of_later(self):
        """What all complete batches have for the customer of submit_later, as docs/reliability.md sums."""
        report = sqlite3.connect(self.stores["controller"] / "report.db")
        try:
            return [row for row, in report.execute(
                "SELECT revenue FROM by_customer WHERE customer = 'later' AND batch IN"
                " (SELECT batch FROM muster_current)")]
        finally:
            report.close()

    def copy_a_ledger_without_a_batch(self):
        self.snapshot_initiator()
        batch = self.submit_later("may")
        self.copy_report()
        self.snapshot_nats()
        return batch

    def test_a_repair_takes_a_batch_away_that_the_ledger_lacks_and_it_counts_once_again(self):
        lacking = self.copy_a_ledger_without_a_batch()
        self.restore_repaired({f"batch {lacking}": "the ledger does not know it"})
        self.assert_exact_again()
        self.assertGreater(self.submit_later("may"), lacking)
        self.assertEqual(self.revenue_of_later(), ["1.500"])

    @unittest.expectedFailure  # the same request makes a second batch, and both count
    def test_without_a_repair_such_a_batch_counts_once(self):
        self.copy_a_ledger_without_a_batch()
        self.restore_as_it_is()
        self.submit_later("may")
        self.assertEqual(self.revenue_of_later(), ["1.500"])

    # NATS counts the batches. A copy that is older than the report gives their numbers again.

    def copy_ledger_and_numbers_without_batches(self):
        """Returns the batches; more than the initiator has numbers in hand."""
        self.snapshot_initiator()
        self.snapshot_nats()
        lacking = [self.submit_later(f"request {number}") for number in range(12)]
        self.copy_report()
        return lacking

    def test_a_repair_lets_numbers_come_again(self):
        lacking = self.copy_ledger_and_numbers_without_batches()
        self.restore_repaired({f"batch {batch}": "the ledger does not know it" for batch in lacking})
        self.assertIn(self.submit_next(), lacking)
        self.assert_exact_again()

    def test_an_empty_nats_server_lets_no_number_come_again(self):
        lacking = self.copy_ledger_and_numbers_without_batches()
        shutil.rmtree(self.backup / "nats0")
        self.restore_as_it_is()
        self.assertGreater(self.submit_next(), max(lacking))
        self.assert_exact_again()

    def test_without_a_repair_no_number_of_the_report_comes_again(self):
        lacking = self.copy_ledger_and_numbers_without_batches()
        self.restore_as_it_is()
        self.assertGreater(self.submit_next(), max(lacking))


class StreamBackupTest(DrillTest):
    """The streams of a running NATS server, as `nats stream backup` and `nats stream restore` do it."""

    def test_the_bucket_of_jobs_and_numbers_alone(self):
        self.snapshot_initiator()
        self.copy_report()
        bucket = take_stream(self.mesh.nats_addresses[0], "KV_muster")
        self.destroy()
        self.restore()
        self.mesh.nats.restart()
        restore_stream(self.mesh.nats_addresses[0], "KV_muster", bucket)
        self.start_again()
        self.assertEqual(sorted(job["job"] for job in self.answer("job", "list")),
                         ["billing", "plain"])
        self.assert_exact_again()
        self.assertEqual(self.submit_next(), 11)


class OneProcess(Mesh):
    """All roles in one process, without a NATS server."""

    def start(self):
        self.reporter = self.server
        self.up = self.add(Program(
            [harness.MUSTER, "up", "--listen", self.server, "--data-dir", self.folder / "up",
             "--threads", 1, *self.role_options], "msg=ready"))
        self.up.await_ready()


class OneProcessTest(DrillTest):
    STORES = ("up",)
    ack_survives = "power"

    def make_mesh(self):
        mesh = OneProcess(self.folder, self.nats_server, self.nats_servers)
        mesh.role_options = ["--drain-grace", "1s"]
        return mesh

    def setUp(self):
        super().setUp()
        self.answer("stream", "create", "homes", "--partitions", 2)
        self.append(*(f"home-{number} open" for number in range(20)))
        self.answer("partition", "replay", "homes/1", "--from", 4, "--group", "store")
        self.events = self.read_events()

    def append(self, *lines):
        done = subprocess.run([harness.MUSTER, "stream", "append", "homes", "--separator", " ",
                               "--server", self.mesh.server], input="\n".join(lines) + "\n",
                              capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)

    def read_events(self):
        return {partition: self.answer("stream", "read", f"homes/{partition}") for partition in (0, 1)}

    def restore_up(self):
        """Also the events of a stream, its offsets, and the checkpoints of its groups."""
        self.destroy()
        self.restore()
        self.mesh.up.restart()
        self.assert_exact_again()
        self.submit_next()
        self.assertEqual(self.read_events(), self.events)
        self.assertTrue(all(self.events.values()))
        self.append("home-0 shut")
        ends = {partition: len(events) for partition, events in self.read_events().items()}
        self.assertEqual(sum(ends.values()), 21)

    def test_the_data_directory_of_a_stopped_process(self):
        self.assertEqual(self.mesh.up.stop(), 0)
        self.copy("up")
        self.assertEqual(self.muster("check", "--data-dir", self.backup / "up").returncode, 0)
        self.restore_up()

    def test_a_snapshot_of_the_data_directory_of_a_running_process(self):
        self.snapshot("up", self.mesh.up)
        self.work_to(25)
        self.restore_up()


def on_other_servers(*cases):
    """Returns the same cases for each further server."""
    return {f"{case.__name__}OnServer{number}": type(case.__name__, (case,), {"nats_server": server})
            for number, server in enumerate(NATS_SERVERS[1:], 1) for case in cases}


globals().update(on_other_servers(RunningTest, StreamBackupTest))

if __name__ == "__main__":
    harness.main()
