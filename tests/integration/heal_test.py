"""What muster mends by itself, and what an administrator mends with it."""

import json
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
        data = retail_input(541909)
        self.stop_midway(data)
        shutil.rmtree(self.data_dir / "queue")
        code, result, errors = self.run_job(data)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["transactions"], 541909)
        self.assert_report_is_the_direct_sum(data, result["batch"])
        self.assert_receipt_holds(result["batch"])

    def test_a_report_that_was_deleted_in_mid_batch_is_made_again(self):
        data = retail_input(541909)
        self.stop_midway(data)
        for file in self.data_dir.glob("report.db*"):
            file.unlink()
        code, result, errors = self.run_job(data)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["transactions"], 541909)
        self.assert_report_is_the_direct_sum(data, result["batch"])


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

    def test_redriven_items_that_fail_again_are_given_up_again(self):
        self.run_job(self.data, job=self.job)
        self.queue("redrive", "moody-in-0")
        code, result, errors = self.run_job(self.data, job=self.job)
        self.assertEqual(code, 3, errors)
        self.assertEqual((result["aggregated"], result["dead_lettered"]), (90, 10))
        self.assert_receipt_holds(result["batch"])


class CommandHandlerTest(MusterTest):
    """A program that misbehaves costs its item an attempt, never the run."""

    def run_program(self, program):
        self.write("moody.py", program)
        job = self.write("job.yaml", MOODY_JOB + "queue: {max_attempts: 2}\n")
        rows = [f"1,A,x,1,2010-12-01 08:26:00,1,{i},France" for i in range(30)]
        data = self.write("in.csv", HEADER + "\n" + "\n".join(rows) + "\n")
        return self.run_job(data, job=job)

    def gives_up_one_item(self, fault):
        code, result, errors = self.run_program(MOODY.replace(
            "    rows = {}", f"    if item['item'] == '1/1':\n        {fault}\n    rows = {{}}"))
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
