# SPDX-License-Identifier: Apache-2.0
"""What a batch has rejected is retried, each record once, over deaths at the worst moments."""

import collections
import json
import os
import signal
import subprocess
import time

import harness
from mesh import READY_SECONDS
from mesh_case import MeshTest

JOB = """
name: picky
input: {input}
item: {{transactions: 10}}
handler: {{command: [python3, {program}, {mended}]}}
queue: {{visibility: 2s}}
groups:
  - {{name: by_text, keys: [text], measures: {{lines: int}}}}
"""

# Rejects what begins with "bad" until the file is there.
PROGRAM = """
import collections, json, os, sys
for line in sys.stdin:
    item = json.loads(line)
    sums, rejected = collections.Counter(), []
    for transaction in item["transactions"]:
        text = transaction["fields"][0]
        if text.startswith("bad") and not os.path.exists(sys.argv[1]):
            rejected.append({"line": transaction["line"], "reason": "no text like " + text})
        else:
            sums[text] += 1
    rows = [{"text": text, "lines": lines} for text, lines in sums.items()]
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups": {"by_text": rows},
                      "rejected": rejected}), flush=True)
"""

LINES = 200
BAD = [7, 42, 43, 150, 200]
LOOKED_AT_RECORDS = 100            # an input is refused where none of so many has a column's member


class RetryOnMeshTest(MeshTest):
    def setUp(self):
        super().setUp()
        self.mended = self.folder / "mended"
        self.apply("{format: lines}")
        self.texts = [f"bad {line}" if line in BAD else f"text {line % 7}"
                      for line in range(1, LINES + 1)]
        self.data = self.write("in.txt", "\n".join(self.texts) + "\n")

    def apply(self, form):
        program = self.write("picky.py", PROGRAM)
        self.answer("job", "apply", self.write("job.yaml", JOB.format(
            input=form, program=program, mended=self.mended)))

    def submit_picky(self, request_id="march"):
        """The number of a complete batch that has rejected the bad lines."""
        done = self.muster(*self.submit_arguments("picky", self.data, request_id))
        result = json.loads(done.stdout)
        self.assertEqual((result["complete"], result["rejected"]), (True, len(BAD)), done.stderr)
        return result["batch"]

    def retry(self, batch, *which):
        """What is retried, asked for until the mesh answers."""
        end = time.monotonic() + READY_SECONDS
        while True:
            done = self.ask("batch", "retry", batch, *which, "-o", "json")
            if done.returncode == 0:
                return json.loads(done.stdout)["retries"]
            self.assertRegex(done.stderr, "UNAVAILABLE|Unavailable|no controller|connect|answer")
            self.assertLess(time.monotonic(), end, done.stderr)

    def complete(self, batch):
        done = self.ask("batch", "watch", batch, "-q", "-o", "json")
        result = json.loads(done.stdout)
        self.assertTrue(result["complete"], done.stderr)
        return result

    def rejections(self, batch):
        return self.answer("batch", "rejections", batch, "--controller", self.mesh.reporter)

    def receipt(self, batch):
        done = self.ask("batch", "receipt", batch)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_each_line_counts_once(self, batches):
        counted = collections.Counter()
        for batch in batches:
            [group] = self.report(batch)["groups"]
            for row in group["rows"]:
                counted[row["text"]] += int(row["lines"])
        self.assertEqual(counted, collections.Counter(self.texts))

    def assert_batches(self, batches):
        self.assertEqual(sorted(batch["batch"] for batch in self.answer("batch", "list")), batches)

    def test_a_line_is_retried_by_itself_and_then_the_rest(self):
        first = self.submit_picky()
        receipt = self.receipt(first)
        [again] = self.retry(first, "--line", 42)
        self.assertEqual((again["transactions"], again["is_new"]), (1, True))
        second = again["batch"]
        self.assertEqual(self.complete(second)["rejected"], 1)
        # The cause names the line of the batch that is retried, too.
        [rejected] = self.rejections(second)
        self.assertEqual((rejected["line"], rejected["retry_of_line"], rejected["reason"]),
                         (1, 42, "no text like bad 42"))
        self.assertEqual({one["line"]: one.get("retried_in") for one in self.rejections(first)},
                         dict.fromkeys(BAD, None) | {42: second})
        self.assertEqual(self.answer("batch", "get", second)["retry_of"], first)

        self.mended.touch()
        self.assertEqual(self.retry(first, "--line", 42),
                         [{"batch": second, "transactions": 1, "is_new": False}])
        [third] = self.retry(second, "--line", 1)
        [rest] = self.retry(first, "--all")
        self.assertEqual((third["transactions"], rest["transactions"]), (1, len(BAD) - 1))
        for retry in (third, rest):
            self.assertEqual(self.complete(retry["batch"])["rejected"], 0)
        batches = [first, second, third["batch"], rest["batch"]]
        self.assert_each_line_counts_once(batches)
        self.assertEqual(self.answer("batch", "get", first)["retried_in"], [second, rest["batch"]])
        nothing = self.ask("batch", "retry", first, "--all")
        self.assertNotEqual(nothing.returncode, 0)
        self.assertIn("nothing is left to retry", nothing.stderr)
        self.assertEqual(self.receipt(first), receipt)
        self.assert_batches(batches)

    def test_two_clients_at_once_retry_each_line_once(self):
        first = self.submit_picky()
        self.mended.touch()
        command = [harness.MUSTER, "batch", "retry", str(first), "--server", self.mesh.server,
                   "-o", "json"]
        named = [argument for line in BAD for argument in ("--line", str(line))]
        calls = [subprocess.Popen([*command, *which], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
                 for which in (named, named, ["--all"], ["--all"])]
        retries = []
        for call in calls:
            out, errors = call.communicate(timeout=harness.TIMEOUT_SECONDS)
            if call.returncode == 0:
                retries += json.loads(out)["retries"]
            else:
                self.assertIn("nothing is left to retry", errors)
        [second] = {retry["batch"] for retry in retries}
        self.assertEqual(sum(retry["is_new"] for retry in retries), 1)
        self.complete(second)
        self.assert_each_line_counts_once([first, second])
        self.assert_batches([first, second])

    def test_records_are_retried_that_all_lack_a_member_which_others_of_the_batch_have(self):
        self.apply("{format: jsonl, columns: [text, note]}")
        whole = {"text": "text", "note": "whole"}
        self.texts = ["text", *["bad"] * 2 * LOOKED_AT_RECORDS]
        self.data = self.write("in.jsonl", "".join(
            json.dumps(whole if text == "text" else {"text": text}) + "\n" for text in self.texts))
        done = self.muster(*self.submit_arguments("picky", self.data))
        first = json.loads(done.stdout)
        self.assertEqual(first["rejected"], 2 * LOOKED_AT_RECORDS, done.stderr)
        self.mended.touch()
        [retry] = self.retry(first["batch"], "--all")
        self.assertEqual(self.complete(retry["batch"])["rejected"], 0)
        self.assert_each_line_counts_once([first["batch"], retry["batch"]])

    def die_at(self, failpoint, role):
        """Has the role die while all that a new batch rejected is retried, after the handler is mended;
        returns the batch."""
        self.mended.unlink(missing_ok=True)
        batch = self.submit_picky(failpoint)
        self.mended.touch()
        role.kill()
        os.environ["MUSTER_FAILPOINT"] = failpoint
        try:
            role.restart()
        finally:
            del os.environ["MUSTER_FAILPOINT"]
        end = time.monotonic() + READY_SECONDS
        while role.process.poll() is None:
            self.assertLess(time.monotonic(), end, f"nothing has died at {failpoint}")
            done = self.ask("batch", "retry", batch, "--all")
            self.assertNotEqual(done.returncode, 0, f"{failpoint} was not passed")
        self.assertEqual(role.wait(), -signal.SIGKILL, failpoint)
        role.restart()
        return batch

    def assert_a_death_doubles_nothing(self, failpoint, role):
        before = [one["batch"] for one in self.answer("batch", "list")]
        first = self.die_at(failpoint, role)
        named = [argument for line in BAD for argument in ("--line", line)]
        [retry] = self.retry(first, *named)
        self.assertEqual(retry["transactions"], len(BAD))
        self.complete(retry["batch"])
        self.assert_each_line_counts_once([first, retry["batch"]])
        self.assert_batches(sorted([*before, first, retry["batch"]]))
        self.assertEqual({one["retried_in"] for one in self.rejections(first)}, {retry["batch"]})

    def test_an_initiator_that_dies_during_a_retry_goes_on(self):
        for failpoint in ("initiator.after_retry_claimed", "initiator.after_retry_submitted"):
            with self.subTest(failpoint=failpoint):
                self.assert_a_death_doubles_nothing(failpoint, self.mesh.initiator)

    def test_a_controller_that_dies_during_a_retry_goes_on(self):
        for failpoint in ("controller.after_rejections_claimed",
                          "controller.after_retry_recorded:1", "controller.after_retry_recorded:2"):
            with self.subTest(failpoint=failpoint):
                self.assert_a_death_doubles_nothing(failpoint, self.mesh.controller)


if __name__ == "__main__":
    harness.main()
