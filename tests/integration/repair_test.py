# SPDX-License-Identifier: Apache-2.0
"""Ordinary repairs: a mended handler, a night that was killed, a redrive, a report that is put back.

The sum that README documents has each input once afterwards, and what is not exact says so.
"""

import json
import shutil
import sqlite3

import harness
from harness import MusterTest

JOB = """
name: tally
input: {format: lines}
item: {transactions: 10}
handler: {command: [python3, tally.py], version: "%s"}
groups:
  - {name: all, keys: [k], measures: {n: int}}
"""
# A record that says "bug" is one that version 1 of the handler gives up.
TALLY = """
import json, sys
for line in sys.stdin:
    item = json.loads(line)
    records = item["transactions"]
    if %s and any("bug" in json.dumps(record) for record in records):
        print(json.dumps({"item": item["item"], "outcome": "dead", "why": "a bug"}), flush=True)
        continue
    print(json.dumps({"item": item["item"], "outcome": "ok",
                      "groups": {"all": [{"k": "x", "n": len(records)}]}}), flush=True)
"""


class RepairTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.data = self.write("in.txt", "".join(f"{'bug' if i == 15 else i}\n" for i in range(100)))
        self.job = self.write("job.yaml", JOB % 1)
        self.write("tally.py", TALLY % "True")
        code, result, errors = self.run_job(self.data, job=self.job)
        self.assertEqual((code, result["aggregated"], result["dead_lettered"]), (3, 90, 10), errors)

    def sum(self):
        """As README sums over batches."""
        report = sqlite3.connect(self.data_dir / "report.db")
        try:
            [(total,)] = report.execute(
                'SELECT coalesce(sum(n), 0) FROM "all" WHERE batch IN (SELECT batch FROM muster_current)')
            return total
        finally:
            report.close()

    def mend(self):
        self.write("tally.py", TALLY % "False")
        self.job = self.write("job.yaml", JOB % 2)

    def get(self, batch):
        done = self.muster("batch", "get", batch, "--data-dir", self.data_dir, "-o", "json")
        return done.returncode, json.loads(done.stdout)

    def test_a_mended_version_counts_in_place_of_the_one_before(self):
        self.assertEqual(self.sum(), 90)
        self.mend()
        code, result, errors = self.run_job(self.data, job=self.job)
        self.assertEqual((code, result["batch"], result["aggregated"]), (0, 2, 100), errors)
        self.assertIn("batch 2 begins, and counts in place of batch 1", errors)
        self.assertEqual(self.sum(), 100)
        self.assertEqual(self.get(1)[1]["replaced_by"], 2)
        self.assertEqual(self.get(2)[1]["replaces"], [1])

    def test_a_redrive_takes_back_that_a_batch_is_complete(self):
        done = self.muster("queue", "redrive", "tally-in-0", "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.sum(), 0)
        done = self.muster("report", 1, "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is open again after a redrive", done.stderr)
        self.write("tally.py", TALLY % "False")
        self.assertEqual(self.run_job(self.data, job=self.job)[0], 0)
        self.assertEqual(self.sum(), 100)

    def test_after_a_redrive_a_new_version_counts_in_place_of_the_batch_if_it_is_told_to(self):
        self.muster("queue", "redrive", "tally-in-0", "--data-dir", self.data_dir)
        self.mend()
        code, _, errors = self.run_job(self.data, job=self.job)
        self.assertEqual(code, 1)
        self.assertIn("or have --new begin a batch that counts in its place", errors)
        code, result, errors = self.run_job(self.data, "--new", job=self.job)
        self.assertEqual((code, result["batch"]), (0, 2), errors)
        self.assertEqual(self.sum(), 100)

    def test_a_report_that_lacks_a_complete_batch_says_so(self):
        shutil.copy(self.data_dir / "report.db", self.folder / "older.db")
        more = self.write("more.txt", "1\n2\n")
        self.assertEqual(self.run_job(more, job=self.job)[0], 0)
        for suffix in ("", "-wal", "-shm"):
            (self.data_dir / f"report.db{suffix}").unlink(missing_ok=True)
        shutil.copy(self.folder / "older.db", self.data_dir / "report.db")
        code, batch = self.get(2)
        self.assertEqual((code, batch["state"]), (6, "complete"))
        self.assertIn("the report has 0 of its 2 transactions and no receipt", batch["problem"])
        self.assertNotEqual(self.muster("report", 2, "--data-dir", self.data_dir).returncode, 0)
        self.assertEqual(self.get(1)[0], 0)


if __name__ == "__main__":
    harness.main()
