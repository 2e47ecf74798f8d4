# SPDX-License-Identifier: Apache-2.0
"""Damage that muster mends by itself, and damage that an administrator mends with it."""

import json
import os
import random
import shutil
import signal

import harness
from harness import HEADER, MusterTest, retail_input

# Answers like examples/retail/bill.py would, but gives up on the lines of one customer while a file
# named "broken" lies beside it.
MOODY = '''
import json, os, sys
for line in sys.stdin:
    item = json.loads(line)
    rows = {}
    bad = False
    for transaction in item["transactions"]:
        customer = transaction["fields"][0]
        bad = bad or customer == "666"
        rows[customer] = rows.get(customer, 0) + 1
    if bad and os.path.exists("broken"):
        answer = {"item": item["item"], "outcome": "dead", "why": "customer 666"}
    else:
        answer = {"item": item["item"], "outcome": "ok", "groups": {"by_customer": [
            {"customer": c, "transactions": n} for c, n in rows.items()]}}
    print(json.dumps(answer), flush=True)
'''

MOODY_JOB = '''
name: moody
input: {format: csv, columns: {customer: CustomerID}}
item: {transactions: 10}
handler: {command: [python3, moody.py]}
groups:
  - {name: by_customer, keys: [customer], measures: {transactions: int}}
'''


class LostQueueTest(MusterTest):
    def stop_midway(self, data):
        process = self.start_run(data, "--threads", 1)
        for line in process.stderr:
            if "begins" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130)

    def test_a_queue_that_was_deleted_in_mid_batch_is_filled_again_from_the_ledger(self):
        data = retail_input(harness.RETAIL_ROWS)
        self.stop_midway(data)
        shutil.rmtree(self.data_dir / "queue")
        code, result, errors = self.run_job(data)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["transactions"], harness.RETAIL_ROWS)
        self.assert_report_is_the_direct_sum(data, result["batch"])
        self.assert_receipt_holds(result["batch"])

    def test_a_report_that_was_deleted_in_mid_batch_is_made_again(self):
        data = retail_input(harness.RETAIL_ROWS)
        self.stop_midway(data)
        for file in self.data_dir.glob("report.db*"):
            file.unlink()
        code, result, errors = self.run_job(data)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["transactions"], harness.RETAIL_ROWS)
        self.assert_report_is_the_direct_sum(data, result["batch"])

    def test_a_queue_of_many_items_is_filled_again_at_once(self):
        job = self.write("job.yaml", MOODY_JOB.replace("item: {transactions: 10}",
                                                       "item: {transactions: 1}"))
        # Its worker waits at a shut gate, so no item is counted before the queue is lost.
        gate = self.folder / "gate"
        os.mkfifo(gate)
        self.write("moody.py", "open('gate').close()\n" + MOODY)
        rows = "".join(f"1,A,x,1,2010-12-01 08:26:00,1,{i % 7},France\n" for i in range(26000))
        data = self.write("in.csv", HEADER + "\n" + rows)
        process = self.start_run(data, "--threads", 1, job=job)
        for line in process.stderr:
            if "queued 26,000" in line:
                break
        process.kill()
        process.communicate(timeout=harness.TIMEOUT_SECONDS)
        shutil.rmtree(self.data_dir / "queue")
        gate.unlink()
        self.write("gate", "")
        code, result, errors = self.run_job(data, job=job)
        self.assertEqual(code, 0, errors)
        self.assertEqual((result["items"], result["aggregated"]), (26000, 26000))


class LostReportTest(MusterTest):
    """A completed batch, and a report without it."""

    def setUp(self):
        super().setUp()
        self.data = retail_input(5000)
        self.assertEqual(self.run_job(self.data)[0], 0)

    def assert_made_again(self):
        code, result, errors = self.run_job(self.data)
        self.assertEqual(code, 0, errors)
        self.assertEqual((result["batch"], result["transactions"]), (1, 5000))
        self.assert_report_is_the_direct_sum(self.data, 1)
        self.assert_receipt_holds(1)

    def test_a_report_that_was_deleted_is_made_again(self):
        for file in self.data_dir.glob("report.db*"):
            file.unlink()
        self.assert_made_again()

    def test_an_older_report_is_completed(self):
        shutil.copy(self.data_dir / "report.db", self.folder / "old.db")
        other = self.retail_rows((1, "2", "7", "France"))
        self.assertEqual(self.run_job(other)[0], 0)
        for file in self.data_dir.glob("report.db*"):
            file.unlink()
        shutil.copy(self.folder / "old.db", self.data_dir / "report.db")
        code, result, errors = self.run_job(other)
        self.assertEqual(code, 0, errors)
        self.assertEqual((result["batch"], result["transactions"]), (2, 1))
        self.assert_made_again()


class RedriveTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.write("moody.py", MOODY)
        self.job = self.write("job.yaml", MOODY_JOB)
        rows = [f"1,A,x,1,2010-12-01 08:26:00,1,{'666' if i == 25 else i % 3},France"
                for i in range(100)]
        self.data = self.write("in.csv", HEADER + "\n" + "\n".join(rows) + "\n")
        self.broken = self.write("broken", "")

    def queue(self, *arguments):
        done = self.muster("queue", *arguments, "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_one_bad_item_is_given_up_and_the_rest_counts(self):
        code, result, errors = self.run_job(self.data, job=self.job)
        self.assertEqual(code, 3, errors)
        self.assertEqual((result["aggregated"], result["dead_lettered"]), (90, 10))
        self.assert_all_accounted_for(result)
        self.assert_receipt_holds(result["batch"])
        [poison] = json.loads(self.queue("poison", "moody-in-0", "-o", "json"))
        self.assertEqual(poison["cause"], "customer 666")
        self.assertIn("item 1/2, 10 transactions from line 22", poison["content"])

    def test_redriven_items_count_when_their_cause_is_mended(self):
        self.run_job(self.data, job=self.job)
        self.broken.unlink()
        self.assertIn("batch 1 is open again", self.queue("redrive", "moody-in-0"))
        code, result, errors = self.run_job(self.data, job=self.job)
        self.assertEqual(code, 0, errors)
        self.assertEqual((result["aggregated"], result["dead_lettered"]), (100, 0))
        self.assertEqual(result["items"], 10)
        self.assert_receipt_holds(result["batch"])
        rows = {row["customer"]: row["transactions"] for row in self.rows(1, "by_customer")}
        self.assertEqual(rows, {"0": "34", "1": "32", "2": "33", "666": "1"})

    def test_a_redriven_item_finds_its_slice_however_large_it_is(self):
        noise = random.Random(1)
        rows = [f"1,A,{noise.randbytes(60000).hex()},1,2010-12-01 08:26:00,1,666,France"
                for _ in range(10)]
        data = self.write("large.csv", HEADER + "\n" + "\n".join(rows) + "\n")
        self.assertEqual(self.run_job(data, job=self.job)[0], 3)
        self.broken.unlink()
        self.queue("redrive", "moody-in-0")
        code, result, errors = self.run_job(data, job=self.job)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["aggregated"], 10)
        self.assertEqual(list((self.data_dir / "blobs").glob("batch-*")), [])

    def test_only_poison_messages_that_are_there_are_redriven(self):
        self.run_job(self.data, job=self.job)
        done = self.muster("queue", "redrive", "moody-in-0", "--message", "nonsense",
                           "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 1)
        self.assertIn("no poison message nonsense", done.stderr)
        self.assertEqual(json.loads(self.queue("redrive", "moody-in-0", "-o", "json")),
                         {"messages": 1, "batches": [1]})
        nowhere = self.folder / "nowhere"
        done = self.muster("queue", "redrive", "moody-in-0", "--data-dir", nowhere)
        self.assertEqual(done.returncode, 1)
        self.assertFalse(nowhere.exists())

    def test_redriven_items_that_fail_again_are_given_up_again(self):
        self.run_job(self.data, job=self.job)
        self.queue("redrive", "moody-in-0")
        code, result, errors = self.run_job(self.data, job=self.job)
        self.assertEqual(code, 3, errors)
        self.assertEqual((result["aggregated"], result["dead_lettered"]), (90, 10))
        self.assert_receipt_holds(result["batch"])


class CommandHandlerTest(MusterTest):
    """A misbehaving program costs its item an attempt, and never ends the run."""

    def run_program(self, program):
        self.write("moody.py", program)
        job = self.write("job.yaml", MOODY_JOB + "queue: {max_attempts: 2}\n")
        rows = [f"1,A,x,1,2010-12-01 08:26:00,1,{i},France" for i in range(30)]
        data = self.write("in.csv", HEADER + "\n" + "\n".join(rows) + "\n")
        return self.run_job(data, job=job)

    def gives_up_one_item(self, fault):
        code, result, errors = self.run_program(MOODY.replace(
            "    rows = {}",
            f"    if item['item'].split(':')[0] == '1/1':\n        {fault}\n    rows = {{}}"))
        self.assertEqual(code, 3, errors)
        self.assertEqual((result["aggregated"], result["dead_lettered"]), (20, 10), errors)
        self.assert_receipt_holds(result["batch"])

    def test_a_crash(self):
        self.gives_up_one_item("os.abort()")

    def test_garbage_output(self):
        self.gives_up_one_item("print('not json', flush=True); continue")

    def test_a_closed_pipe(self):
        self.gives_up_one_item("os.close(1); continue")


if __name__ == "__main__":
    harness.main()
