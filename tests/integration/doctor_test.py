# SPDX-License-Identifier: Apache-2.0
"""What `muster doctor` says of a mesh of real programs: why work is not done, and what woke the
workers."""

import contextlib
import json
import sqlite3

import harness
from harness import ROOT, looks, retail_input
from mesh import READY_SECONDS, free_address
from mesh_case import FaultTest, MeshTest


class LookTest(MeshTest):
    def await_finding(self, what, text):
        """Waits for the doctor's finding about `what` that contains `text`; it needs a heartbeat or
        two."""
        for _ in looks(READY_SECONDS):
            done = self.ask("doctor", "-o", "json")
            findings = json.loads(done.stdout)
            for finding in findings:
                if finding["what"] == what and text in finding["found"]:
                    self.assertEqual(done.returncode, 1, "something is wrong")
                    return finding
        raise self.failureException(f"no {text!r} of {what}: {findings}")

    def await_sound(self, what):
        """Waits until the doctor finds nothing wrong with `what`."""
        for _ in looks(READY_SECONDS):
            findings = [finding for finding in json.loads(self.ask("doctor", "-o", "json").stdout)
                        if finding["what"] == what]
            if not any(finding["health"] == "wrong" for finding in findings):
                return
        raise self.failureException(f"still wrong: {findings}")

    def workers(self, job):
        return [worker for worker in self.answer("worker", "list") if worker["job"] == job]


class TroubleTest(LookTest):
    def test_a_script_that_is_not_there_is_found_before_anything_is_submitted(self):
        self.apply_billing("/nowhere/bill.py")
        finding = self.await_finding("job billing", "no script /nowhere/bill.py for python3")
        self.assertEqual(finding["health"], "wrong")
        self.assertIn("once that is mended", finding["to_do"])
        for worker in self.workers("billing"):
            self.assertEqual((worker["phase"], worker["threads_max"]), ("cannot work", None))
            self.assertIn("/nowhere/bill.py", worker["trouble"])
        self.apply_billing()
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.assert_exact(data, 1, self.submit("billing", data))
        self.await_sound("job billing")

    def test_a_program_that_always_fails_is_told_with_its_last_words(self):
        program = self.write("broken.py", "raise ImportError('no module rates')\n")
        self.apply_billing(program)
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.start_submit("billing", data)
        self.await_finding("job billing", "no module rates")

    def test_a_program_that_hangs_is_told_with_its_item(self):
        program = self.write("hang.py", "import time\ntime.sleep(1000)\n")
        text = (ROOT / "examples/retail/job_python.yaml").read_text()
        for old, new in (("[python3, bill.py]", f"[python3, {program}]"),
                         ("sla: {max: 5m}", "sla: {max: 1s}")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.answer("job", "apply", self.write("job.yaml", text))
        self.start_submit("retail_python", self.retail_rows((3, "0.1", "7", "France")))
        finding = self.await_finding("job retail_python",
                                     f"item 1/0 has been with its handler (python3 {program})")
        self.assertIn("it is ended, and charged an attempt, 1m after the handler takes it", finding["found"])

    def test_a_program_that_the_processors_do_not_allow_is_found_before_anything_is_submitted(self):
        text = (ROOT / "examples/retail/job_python.yaml").read_text()
        text = text.replace("[python3, bill.py]", "[sh, -c, 'touch /tmp/never']")
        self.answer("job", "apply", self.write("job.yaml", text))
        finding = self.await_finding("job retail_python", "which this processor does not allow")
        self.assertIn("--handler-programs", finding["found"])

    def test_an_address_at_which_nobody_is_is_found_before_anything_is_submitted(self):
        address = free_address()
        text = (ROOT / "examples/python_retail/job.yaml").read_text()
        self.assertIn('"localhost:7800"', text)
        text = text.replace('"localhost:7800"', f'"{address}"')
        self.answer("job", "apply", self.write("job.yaml", text))
        self.await_finding("job retail_server", f"the handler at {address} cannot be connected to")


class LockedReportTest(FaultTest, LookTest):
    def test_a_report_that_an_sql_shell_has_locked_is_told_of_the_job_and_of_its_batch(self):
        with contextlib.closing(sqlite3.connect(self.mesh.folder / "controller/report.db",
                                                isolation_level=None)) as shell:
            shell.execute("BEGIN IMMEDIATE")
            self.gate.open()
            finding = self.await_finding("job billing", "another program has a transaction open")
            self.assertIn("cannot count its results", finding["found"])
            self.await_batch(1, lambda batch: "transaction open" in batch.get("problem", ""))
        self.assert_ends_exactly_once()
        self.await_sound("job billing")


class SilenceTest(LookTest):
    def test_a_nats_server_that_is_gone_is_the_one_thing_that_is_wrong(self):
        self.apply_billing()
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.submit("billing", data)
        self.mesh.nats.kill()
        self.mesh.initiator.await_line("the NATS connection is lost")
        self.assert_nats_alone_is_wrong()
        self.mesh.nats.restart()
        for program in (self.mesh.initiator, self.mesh.controller, *self.mesh.processors):
            program.await_line("msg=ready", times=2)
        self.await_sound("NATS")


    def test_a_nats_server_that_hangs_is_the_one_thing_that_is_wrong_at_once(self):
        self.apply_billing()
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.submit("billing", data)
        self.mesh.nats.freeze()
        self.addCleanup(self.mesh.nats.thaw)
        # The doctor's calls to the server time out long before the server's clients take it for
        # lost.
        self.assert_nats_alone_is_wrong()
        self.mesh.nats.thaw()
        self.await_sound("NATS")

    def assert_nats_alone_is_wrong(self):
        done = self.ask("doctor", "-o", "json")
        self.assertEqual(done.returncode, 1, done.stderr)
        findings = json.loads(done.stdout)
        self.assertEqual(findings[0]["what"], "NATS")
        self.assertIn("start nats-server", findings[0]["to_do"])
        self.assertEqual([f["what"] for f in findings if f["health"] == "wrong"], ["NATS"])
        unknown = [f["what"] for f in findings if f["health"] == "unknown"]
        for what in ("jobs", "queues", "batches"):
            self.assertIn(what, unknown)


class WakeupsTest(LookTest):
    def test_workers_are_woken_by_what_is_submitted_and_not_by_looking_for_it(self):
        self.apply_billing()
        data = retail_input(4000)
        self.assert_exact(data, 4000, self.submit("billing", data))
        workers = self.workers("billing")
        self.assertEqual(len(workers), 2)
        # A processor that could not look at the job's queues at once has no listener yet.
        listening = [worker for worker in workers if worker["phase"] == "listening"]
        self.assertGreaterEqual(sum(worker["wakeups_push"] for worker in listening), 1)
        # The first such check comes after 30 s, and finds work only where a trigger was lost.
        self.assertEqual(sum(worker["wakeups_safety"] for worker in listening), 0)


if __name__ == "__main__":
    harness.main()
