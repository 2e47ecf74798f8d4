# SPDX-License-Identifier: Apache-2.0
"""One bad transaction among many: its cost for its item and for the others."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess

import harness
from harness import MusterTest

FRAGILE = os.environ["FRAGILE_MUSTER"]

JOB = """
name: fragile
input: {{format: lines}}
item: {{transactions: {transactions}}}
handler: {handler}
queue: {{max_attempts: 3}}
groups:
  - {{name: by_text, keys: [text], measures: {{lines: int}}}}
"""

PROGRAM = """
import collections, json, os, sys
for line in sys.stdin:
    item = json.loads(line)
    sums = collections.Counter()
    for transaction in item["transactions"]:
        text = transaction["fields"][0]
        if text == "abort":
            print("about to abort", file=sys.stderr, flush=True)
            os.abort()
        sums[text] += 1
    rows = [{"text": text, "lines": lines} for text, lines in sums.items()]
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups": {"by_text": rows}}),
          flush=True)
"""


class PoisonTest(MusterTest):

    def job(self, handler, transactions):
        return self.write("job.yaml", JOB.format(handler=handler, transactions=transactions))

    def lines(self, count, bad_line, bad):
        """Writes `count` lines, of which line `bad_line` (from 1) is `bad`."""
        lines = [f"text {i % 7}" for i in range(count)]
        lines[bad_line - 1] = bad
        return self.write("in.txt", "\n".join(lines) + "\n")

    def run_fragile(self, data, job):
        """Returns (exit code, the JSON object unless a signal ended the run, stderr)."""
        done = subprocess.run([FRAGILE, *self.run_arguments(data, job=job)], capture_output=True,
                              text=True, timeout=harness.TIMEOUT_SECONDS)
        return done.returncode, json.loads(done.stdout) if done.returncode >= 0 else None, done.stderr

    def rejections(self):
        """Returns (line, reason) of each rejection."""
        with contextlib.closing(sqlite3.connect(self.data_dir / "report.db")) as report:
            return report.execute("SELECT line, reason FROM muster_rejections").fetchall()

    def test_an_abort_in_a_linked_handler_costs_its_item_alone(self):
        data = self.lines(10000, 6001, "abort")
        job = self.job("{linked: fragile}", transactions=1)
        code, _, errors = self.run_fragile(data, job)
        self.assertEqual(code, -signal.SIGABRT, errors)
        code, result, errors = self.run_fragile(data, job)
        self.assertEqual(code, 3, errors)
        self.assertEqual((result["items"], result["aggregated"], result["dead_lettered"]),
                         (10000, 9999, 1))
        self.assertIn("signal 6 (Aborted), peak memory", errors)
        self.assertIn("| about to abort", errors)
        self.assertRegex(errors, r"\n1 item was given up: muster batch dead-letters 1 --data-dir .*\n"
                                 r"  item 6000: .*signal 6")
        self.assert_receipt_holds(1)

    def test_an_exception_in_a_linked_handler_costs_its_transaction_alone(self):
        data = self.lines(2000, 1234, "throw")
        code, result, errors = self.run_fragile(data, self.job("{linked: fragile}", transactions=500))
        self.assertEqual(code, 3, errors)
        self.assertEqual((result["aggregated"], result["rejected"], result["dead_lettered"]),
                         (1999, 1, 0))
        self.assertEqual(self.rejections(), [(1234, "poison: the handler threw: no luck")])
        self.assert_receipt_holds(1)

    def test_an_abort_in_a_command_handler_costs_its_transaction_alone(self):
        self.write("program.py", PROGRAM)
        data = self.lines(20000, 7777, "abort")
        job = self.job("{command: [python3, program.py]}", transactions=2)
        code, result, errors = self.run_job(data, job=job)
        self.assertEqual(code, 3, errors)
        self.assertEqual((result["items"], result["aggregated"], result["rejected"],
                          result["dead_lettered"]), (10000, 19999, 1, 0))
        [(line, reason)] = self.rejections()
        self.assertEqual(line, 7777)
        self.assertIn("signal 6 (Aborted)", reason)
        self.assertIn("about to abort", reason)
        self.assert_receipt_holds(1)


if __name__ == "__main__":
    harness.main()
