# SPDX-License-Identifier: Apache-2.0
"""The base of tests of a whole mesh: a case that starts one, and one whose work is held up."""

import hashlib
import json
import os
import subprocess
import time

import harness
from harness import ROOT, MusterTest, looks, retail_input
from mesh import NATS_SERVERS, READY_SECONDS, Mesh

ROWS = 4000
ROWS_PER_ITEM = 100
# This many items are worked on before the gate.
FREE_ITEMS = 5

# Bills like the retail job, but most items wait until a test opens the gate.
GATED = f'''
import json, sys
sys.path.insert(0, {str(ROOT / "examples/retail")!r})
import bill

def gated(lines):
    for line in lines:
        item = json.loads(line)["item"]  # "BATCH/ITEM:ATTEMPT"
        if int(item.split(":")[0].split("/")[1]) >= {FREE_ITEMS}:
            open(sys.argv[1]).close()
        yield line

sys.stdin = gated(sys.stdin)
bill.main()
'''


class Gate:
    """A pipe: opening it for reading blocks while the gate is shut."""

    def __init__(self, path):
        self.path = path
        self.held = None
        os.mkfifo(path)

    def open(self):
        if self.held is None:
            self.held = os.open(self.path, os.O_RDWR)


class MeshTest(MusterTest):
    """Gives each test its own mesh, on the NATS server that the class names."""

    nats_server = NATS_SERVERS[0]
    nats_servers = 1
    item_size = "256KiB"  # at most
    content = "reference"  # how it travels
    ack_survives = "process"  # as receipts say

    def setUp(self):
        super().setUp()
        self.mesh = self.make_mesh()
        self.addCleanup(self.mesh.kill)
        self.start_mesh()

    def make_mesh(self):
        return Mesh(self.folder, self.nats_server, self.nats_servers)

    def start_mesh(self):
        self.mesh.start()

    def ask(self, *arguments):
        return self.muster(*arguments, "--server", self.mesh.server)

    def answer(self, *arguments):
        """The JSON object that a command prints."""
        done = self.ask(*arguments, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def apply_billing(self, *program, name="billing", visibility=f"{Mesh.LEASE_SECONDS}s",
                      item_lines=ROWS_PER_ITEM):
        """A retail job, billed by a program in Python."""
        program = program or (ROOT / "examples/retail/bill.py",)
        text = (ROOT / "examples/retail/job_python.yaml").read_text()
        for old, new in (("name: retail_python", f"name: {name}"),
                         ("transactions: 500", f"transactions: {item_lines}"),
                         ("max_bytes: 256KiB", f"max_bytes: {self.item_size}"),
                         ("[python3, bill.py]", f"[python3, {', '.join(map(str, program))}]"),
                         ("visibility: 30s", f"visibility: {visibility}, content: {self.content}"),
                         ("deadline: 60s", "deadline: 1h")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.answer("job", "apply", self.write(f"{name}.yaml", text))

    def submit_arguments(self, job, data, request_id="march", server=None):
        return ["batch", "submit", job, "--input", str(data), "--request-id", request_id, "--wait",
                "-o", "json", "--server", server or self.mesh.server]

    def submit(self, job, data, request_id="march"):
        """Submits a batch, waits until it is complete, and returns its JSON object."""
        done = self.muster(*self.submit_arguments(job, data, request_id))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def start_submit(self, job, data, server=None, request_id="march"):
        process = subprocess.Popen(
            [harness.MUSTER, *self.submit_arguments(job, data, request_id, server)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def await_batch(self, batch, reached):
        """Waits until `reached` is true of `batch`, and returns that view of it."""
        for _ in looks(READY_SECONDS):
            found = [b for b in self.answer("batch", "list") if b["batch"] == batch]
            if found and reached(found[0]):
                return found[0]
        said = "".join(line for program in self.mesh.programs for line in program.log.lines)
        raise self.failureException(f"batch {batch} never got there: {found}\n{said}")

    def await_busy(self, processors):
        """Waits until this many processors, each with one thread, report it busy in their heartbeats."""
        for _ in looks(READY_SECONDS):
            workers = self.answer("worker", "list")
            if sum(worker["threads_busy"] or 0 for worker in workers) == processors:
                return
        self.fail(f"not all are busy: {workers}")

    # Asks the controller itself: a restarted initiator may not know it yet.
    def report(self, batch, *more):
        return self.answer("report", batch, "--controller", self.mesh.reporter, *more)

    def assert_receipt_is_complete(self, batch, transactions):
        done = self.ask("batch", "receipt", batch)
        self.assertEqual(done.returncode, 0, done.stderr)
        text, _, checksum = done.stdout.rpartition("checksum ")
        for line in (f"transactions {transactions}", f"aggregated {transactions}", "rejected 0",
                     "dead_lettered 0", f"ack_survives {self.ack_survives}"):
            self.assertIn(line, text.splitlines())
        self.assertEqual(hashlib.sha256(text.encode()).hexdigest(), checksum.strip())

    def assert_exact(self, data, rows, result):
        self.assertTrue(result["complete"])
        self.assertEqual(result["transactions"], rows)
        self.assert_all_accounted_for(result)
        self.assert_report_is_the_direct_sum(data, result["batch"])
        self.assert_receipt_is_complete(result["batch"], rows)


class FaultTest(MeshTest):
    """Each test breaks something in mid-batch, while `muster batch submit --wait` runs."""

    def setUp(self):
        super().setUp()
        self.gate = Gate(self.folder / "gate")
        # Lets all waiting handler programs end.
        self.addCleanup(self.gate.open)
        self.data = self.make_data()
        self.apply_billing(self.write("gated.py", GATED), self.gate.path)
        self.submission = self.start_submit("billing", self.data)
        half = self.await_batch(1, lambda batch: batch["items_counted"] == FREE_ITEMS)
        self.assertEqual(half["aggregated"], FREE_ITEMS * ROWS_PER_ITEM)

    def make_data(self):
        return retail_input(ROWS)

    @staticmethod
    def outlast_leases():
        """Waits until a dead holder's messages are visible to others. A busy listener finds them after
        its current work; an idle listener looks for lapsed leases only twice a minute."""
        time.sleep(Mesh.LEASE_SECONDS + 0.5)

    def assert_ends_exactly_once(self):
        self.gate.open()
        out, errors = self.submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(self.submission.returncode, 0, errors)
        result = json.loads(out)
        self.assert_exact(self.data, ROWS, result)
        self.assertEqual(self.submit("billing", self.data)["batch"], result["batch"])
        self.assertEqual(len(self.answer("batch", "list")), 1)
