# SPDX-License-Identifier: Apache-2.0
"""Items whose messages refer to the content: what happens when the source changes or goes."""

import json
import os
import pathlib
import shutil

import harness
import mesh_case
from harness import HEADER, MusterTest, retail_input
from heal_test import MOODY, MOODY_JOB
from mesh_case import FREE_ITEMS, GATED, ROWS_PER_ITEM, Gate
from up_test import OneProcess

ROWS = 2000

# Counts transactions, but waits at a gate before the first item.
WAITING = """
import json, sys
open("gate").close()
for line in sys.stdin:
    item = json.loads(line)
    rows = [{"customer": "all", "transactions": len(item["transactions"])}]
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups": {"by_customer": rows}}),
          flush=True)
"""


def change_a_byte(path, row):
    """Changes a digit of one row, in place: size and length of the line stay."""
    lines = path.read_bytes().split(b"\n")
    at = sum(len(line) + 1 for line in lines[:row])
    with open(path, "r+b") as file:
        file.seek(at)
        old = file.read(1)
        file.seek(at)
        file.write(b"9" if old != b"9" else b"8")


class RunTest(MusterTest):
    """`muster run`, whose items wait until the test has done something to the input."""

    def setUp(self):
        super().setUp()
        self.gate = self.folder / "gate"
        os.mkfifo(self.gate)
        self.write("moody.py", WAITING)
        self.job = self.write("job.yaml", MOODY_JOB.replace("transactions: 10", "transactions: 200"))
        self.data = pathlib.Path(shutil.copy(retail_input(ROWS), self.folder / "input.csv"))
        self.good = self.data.read_bytes()

    def start_and_split(self):
        process = self.start_run(self.data, "--threads", 1, job=self.job)
        for line in process.stderr:
            if "queued 2,000" in line:
                return process
        self.fail("it ended before all was queued")

    def open_gate(self):
        with open(self.gate, "wb"):  # once the handler waits there
            pass
        self.gate.unlink()
        self.write("gate", "")

    def assert_completes(self):
        code, result, errors = self.run_job(self.data, job=self.job)
        self.assertEqual(code, 0, errors)
        self.assertEqual((result["batch"], result["aggregated"]), (1, ROWS))
        self.assertEqual(self.rows(1, "by_customer")[0]["transactions"], str(ROWS))
        self.assert_receipt_holds(1)
        return result

    def assert_stops(self, process, why):
        self.open_gate()
        _, errors = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn(why, errors)
        self.assertIn("Put the file back as it was and run the same command again", errors)
        self.assertIn("or with --new, beside batch 1", errors)

    def test_a_changed_source_stops_the_run_and_it_goes_on_when_the_source_is_back(self):
        process = self.start_and_split()
        change_a_byte(self.data, 1500)
        self.assert_stops(process, "its bytes have changed since the batch was split")
        self.data.write_bytes(self.good)
        self.assert_completes()
        done = self.muster("batch", "receipt", 1, "--data-dir", self.data_dir)
        self.assertIn("dead_lettered 0", done.stdout)
        self.assertIn("attempts 10", done.stdout, "no item was charged for it")

    def test_a_source_that_was_cut_stops_the_run_and_it_goes_on_when_the_source_is_back(self):
        process = self.start_and_split()
        os.truncate(self.data, len(self.good) // 2)
        self.assert_stops(process, "it was cut while it was read")
        self.data.write_bytes(self.good)
        self.assert_completes()

    def test_a_source_that_was_removed_or_replaced_is_read_to_its_end(self):
        process = self.start_and_split()
        self.data.unlink()
        self.data.write_bytes(b"something else")
        self.open_gate()
        _, errors = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.rows(1, "by_customer")[0]["transactions"], str(ROWS))

    def test_content_travels_inline_where_the_job_says_so(self):
        self.job = self.write("job.yaml", self.job.read_text() + "queue: {content: inline}\n")
        process = self.start_and_split()
        change_a_byte(self.data, 1500)
        self.open_gate()
        _, errors = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.rows(1, "by_customer")[0]["transactions"], str(ROWS))


class RedriveTest(mesh_case.MeshTest):
    """A dead letter of `muster run`, whose file is gone; redriven by `muster up`."""

    def make_mesh(self):
        return OneProcess(self.folder)

    def start_mesh(self):
        pass  # once there is a dead letter

    def test_a_dead_letter_is_redriven_without_the_users_file(self):
        self.write("moody.py", MOODY)
        job = self.write("job.yaml", MOODY_JOB.replace("transactions: 10", "transactions: 200"))
        rows = [f"1,A,{'x' * 50},1,2010-12-01 08:26:00,1,{'666' if i == 250 else i % 3},France"
                for i in range(600)]
        data = self.write("in.csv", HEADER + "\n" + "\n".join(rows) + "\n")
        broken = self.write("broken", "")
        self.assertEqual(self.run_job(data, job=job)[0], 3)
        self.assertEqual(len(list((self.data_dir / "blobs").glob("batch-1-item-1*"))), 1)
        data.unlink()
        broken.unlink()
        self.mesh.folder = self.folder
        os.chdir(self.folder)  # where a processor looks for the script
        self.addCleanup(os.chdir, harness.ROOT)
        self.mesh.start()
        self.answer("job", "apply", job)
        self.answer("queue", "redrive", "moody-in-0")
        self.await_batch(1, lambda batch: batch["state"] == "complete")
        done = self.ask("batch", "receipt", 1)
        self.assertIn("aggregated 600", done.stdout)


class UploadTest(mesh_case.MeshTest):
    """The upload on an initiator's disk, which processors read."""

    def setUp(self):
        super().setUp()
        self.gate = Gate(self.folder / "gate")
        self.addCleanup(self.gate.open)
        script = self.write("gated.py", GATED)
        self.apply_billing(script, self.gate.path)
        self.data = retail_input(ROWS)

    def begin(self):
        submitted = self.start_submit("billing", self.data)
        self.await_batch(1, lambda batch: batch["state"] == "sealed"
                         and batch["items_counted"] >= FREE_ITEMS)
        return submitted

    def upload(self):
        [path] = self.folder.rglob("uploads/1")
        return path

    def test_a_damaged_upload_stops_its_batch_and_it_goes_on_when_the_upload_is_back(self):
        submitted = self.begin()
        good = self.upload().read_bytes()
        change_a_byte(self.upload(), ROWS - ROWS_PER_ITEM // 2)
        self.gate.open()
        stopped = self.await_batch(1, lambda batch: "is damaged" in (batch.get("problem") or ""))
        self.assertIn("its bytes have changed since the batch was split", stopped["problem"])
        self.assertIn("back from a backup, or cancel the batch", stopped["problem"])
        self.upload().write_bytes(good)
        output, errors = submitted.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submitted.returncode, 0, errors)
        self.assert_exact(self.data, ROWS, json.loads(output))
        done = self.ask("batch", "receipt", 1)
        self.assertIn(f"attempts {ROWS // ROWS_PER_ITEM}", done.stdout, "no item was charged")


if __name__ == "__main__":
    harness.main()
