# SPDX-License-Identifier: Apache-2.0
"""Dies at every failpoint in turn: after every death, the same command again ends with the totals of
an independent sum.

A failpoint (muster/base/failpoint.h) lies between two durable steps. Each has a scenario here that
must pass it: the process has to die there of SIGKILL.
"""

import re
import shutil
import signal

import harness
from fragile import GIVEN_UP, JOB, FragileTest, flip_a_byte
from harness import ROOT

# Failpoints that a first run passes, with the passages at which it dies there.
RUN = {
    "run.after_open": [1],
    "initiator.after_number": [1],
    "initiator.after_batch_recorded": [1],
    "initiator.after_items_recorded": [1, 2],
    "initiator.after_put": [1, 4],
    "initiator.after_put_noted": [1, 2],
    "initiator.before_seal": [1],
    "initiator.after_seal": [1],
    "blob.before_rename": [1],
    "blob.after_rename": [1],
    "rocks.before_sync": [1, 5, 9, 14],
    "queue.before_write": [1, 4, 7, 30, 60],
    "queue.after_put": [1, 2, 5],
    "queue.after_lease": [1, 3],
    "queue.after_begin": [1, 50],
    "queue.after_update": [1],
    "queue.after_delete": [1, 2],
    "queue.after_dead_letter": [1],
    "processor.after_begin": [1, 80],
    "processor.after_handler": [1, 80],
    "listener.after_result_put": [1, 2],
    "listener.after_delete": [1],
    "listener.after_give_back": [1],
    "listener.before_dead_letter": [1],
    "listener.after_dead_letter": [1],
    "report.in_transaction": [1],
    "controller.before_commit": [1],
    "controller.after_commit": [1],
    "controller.before_delete": [1],
    "controller.after_delete": [1],
    "controller.after_receipt": [1],
    "controller.after_completion": [1],
    "initiator.before_blobs_deleted": [1],
    "initiator.after_blobs_deleted": [1],
}
LOST_QUEUE = ["initiator.after_refill_begun"]
LOST_REPORT = ["run.after_reopen"]
REPAIR_OF_A_LOG = ["repair.after_logs_kept"]
REPAIR_OF_A_TABLE = ["repair.before_exchange", "repair.after_exchange"]
REPAIR_OF_A_RECORD = ["repair.after_records_kept"]
REPAIR_OF_A_REPORT = ["repair.before_report_replaced"]
# No run moves messages between queues: tests/queue_gateway/extensions_test.py has the scenario. Those of
# schedules are in schedules_test.py.
ELSEWHERE = ["queue.after_move", "schedule.after_entry", "schedule.after_begin",
             "schedule.after_submit", "schedule.after_fence", "schedule.after_update"]
# They are passed on a mesh alone: retry_on_mesh_test.py has the scenarios.
RETRY = ["initiator.after_retry_claimed", "initiator.after_retry_submitted",
         "controller.after_rejections_claimed", "controller.after_retry_recorded"]
REDRIVE = ["redrive.after_ledger", "redrive.after_report", "queue.after_redrive"]


def failpoints_in_the_source():
    """Returns the name of each MUSTER_FAILPOINT, once for each occurrence."""
    names = []
    for folder in ("muster", "services", "cli"):
        for source in (ROOT / folder).rglob("*.cc"):
            if not source.name.endswith("_test.cc"):
                names += re.findall(r'MUSTER_FAILPOINT\("([^"]+)"\)', source.read_text())
    return names


class FailpointTest(FragileTest):
    def setUp(self):
        super().setUp()
        self.round = 0

    def in_a_new_data_dir(self):
        shutil.rmtree(self.data_dir, ignore_errors=True)
        self.round += 1
        self.data_dir = self.folder / f"data{self.round}"

    def test_each_failpoint_of_the_source_has_a_scenario(self):
        scenarios = [*RUN, *LOST_QUEUE, *LOST_REPORT, *REPAIR_OF_A_LOG, *REPAIR_OF_A_TABLE,
                     *REPAIR_OF_A_RECORD, *REPAIR_OF_A_REPORT, *REDRIVE, *RETRY,
                     *ELSEWHERE]
        self.assertEqual(sorted(failpoints_in_the_source()), sorted(scenarios))

    def test_each_failpoint_is_in_the_docs(self):
        page = (ROOT / "docs/reliability.md").read_text()
        for name in failpoints_in_the_source():
            self.assertIn(f"`{name}`", page)

    def test_a_name_that_is_never_passed_kills_nobody(self):
        self.assertEqual(self.run_batch(failpoint="nobody.passes_here").returncode, 3)

    def test_a_failpoint_that_cannot_be_read_is_refused(self):
        self.assertEqual(self.run_batch(failpoint="run.after_open:x").returncode, -signal.SIGABRT)

    def test_a_run_that_dies_at_any_failpoint_goes_on_exactly(self):
        for name, passages in RUN.items():
            for nth in passages:
                failpoint = f"{name}:{nth}"
                with self.subTest(failpoint=failpoint):
                    self.in_a_new_data_dir()
                    # Content travels inline, with a blob, or by reference, by turns.
                    by_reference = self.round % 2 == 0 and not name.startswith("blob.")
                    self.write("job.yaml",
                               JOB.replace(", content: inline", "") if by_reference else JOB)
                    self.assert_died(self.run_batch(failpoint=failpoint), failpoint)
                    self.assert_exact(self.run_batch(), 3, [GIVEN_UP])
                    self.assertEqual([blob.name for blob in (self.data_dir / "blobs").iterdir()
                                      if blob.suffix == ".blob"], [])

    def test_a_refill_of_a_lost_queue_that_dies_goes_on_exactly(self):
        for failpoint in LOST_QUEUE:
            with self.subTest(failpoint=failpoint):
                self.in_a_new_data_dir()
                self.assert_died(self.run_batch(failpoint="controller.before_commit"), failpoint)
                shutil.rmtree(self.data_dir / "queue")
                self.assert_died(self.run_batch(failpoint=failpoint), failpoint)
                self.assert_exact(self.run_batch(), 3, [GIVEN_UP])

    def test_counting_a_lost_report_again_goes_on_exactly(self):
        for failpoint in LOST_REPORT:
            with self.subTest(failpoint=failpoint):
                self.in_a_new_data_dir()
                self.assertEqual(self.run_batch().returncode, 3)
                for file in self.data_dir.glob("report.db*"):
                    file.unlink()
                self.assert_died(self.run_batch(failpoint=failpoint), failpoint)
                self.assert_exact(self.run_batch(), 3, [GIVEN_UP])

    def repair_twice(self, failpoint):
        """A repair dies, and the next repair completes it."""
        self.assert_died(self.check("--repair", failpoint=failpoint), failpoint)
        done = self.check("--repair")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.check().returncode, 0)
        self.assert_exact(self.run_batch(), 3, [GIVEN_UP])

    def test_a_repair_of_a_damaged_log_that_dies_is_done_again(self):
        for failpoint in REPAIR_OF_A_LOG:
            with self.subTest(failpoint=failpoint):
                self.in_a_new_data_dir()
                self.assert_died(self.run_batch(failpoint="controller.before_commit"), failpoint)
                flip_a_byte(max((self.data_dir / "queue").glob("*.log")), 0.5)
                self.repair_twice(failpoint)

    def test_a_repair_of_a_damaged_table_that_dies_is_done_again(self):
        for failpoint in REPAIR_OF_A_TABLE:
            with self.subTest(failpoint=failpoint):
                self.in_a_new_data_dir()
                self.die_with_everything_in_tables()
                flip_a_byte(max((self.data_dir / "queue").glob("*.sst"),
                                key=lambda table: table.stat().st_size), 0.5)
                self.repair_twice(failpoint)

    def test_a_repair_of_a_damaged_record_that_dies_is_done_again(self):
        """The blob of a message is missing."""
        for failpoint in REPAIR_OF_A_RECORD:
            with self.subTest(failpoint=failpoint):
                self.in_a_new_data_dir()
                self.assert_died(self.run_batch(failpoint="queue.after_begin"), failpoint)
                [blob] = (self.data_dir / "blobs").glob("*.blob")
                blob.unlink()
                self.repair_twice(failpoint)
                for repair in (1, 2):
                    kept = self.data_dir / f"damaged/{repair}/records.jsonl"
                    self.assertEqual(len(kept.read_text().splitlines()), 2)

    def test_a_repair_of_a_damaged_report_that_dies_is_done_again(self):
        for failpoint in REPAIR_OF_A_REPORT:
            with self.subTest(failpoint=failpoint):
                self.in_a_new_data_dir()
                self.assertEqual(self.run_batch().returncode, 3)
                flip_a_byte(self.data_dir / "report.db", 0.5)
                self.repair_twice(failpoint)

    def test_a_redrive_that_dies_is_done_again_and_counts_once(self):
        for failpoint in REDRIVE:
            with self.subTest(failpoint=failpoint):
                self.in_a_new_data_dir()
                self.assertEqual(self.run_batch().returncode, 3)
                self.assert_died(self.redrive(failpoint=failpoint), failpoint)
                self.assertEqual(self.redrive().returncode, 0)
                self.assert_exact(self.run_batch(mended=True), 0, [])

    def test_a_batch_whose_redrive_died_ends_without_another_one(self):
        for failpoint in REDRIVE:
            with self.subTest(failpoint=failpoint):
                self.in_a_new_data_dir()
                self.assertEqual(self.run_batch().returncode, 3)
                self.assert_died(self.redrive(failpoint=failpoint), failpoint)
                done = self.run_batch()
                self.assert_exact(done, 3, [GIVEN_UP])


if __name__ == "__main__":
    harness.main()
