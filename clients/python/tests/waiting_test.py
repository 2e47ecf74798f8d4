# SPDX-License-Identifier: Apache-2.0
"""Why a batch waits, as its submitter hears it: for each cause, `batch get`, `batch list`, `batch
watch`, `batch submit --wait`, the Python client and `muster doctor` say the same sentence."""

import pathlib
import re
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/integration"))

import harness
import muster
from harness import retail_input
from mesh import READY_SECONDS, Mesh, Program, free_address
from mesh_case import MeshTest

class LonelyMesh(Mesh):
    """One processor."""

    def start_processors(self):
        return [self.start_processor()]

    def start_processor(self, *more):
        return self.start_role("processor", None, "--threads", 1, *more)


class WaitingTest(MeshTest):
    def make_mesh(self):
        return LonelyMesh(self.folder, self.nats_server, self.nats_servers)

    def setUp(self):
        super().setUp()
        self.data = retail_input(10)

    def follow(self, *arguments):
        program = Program([harness.MUSTER, *arguments, "--server", self.mesh.server], None)
        self.addCleanup(program.kill)
        return program

    def waits(self, job, *more):
        """Submits a batch of `job` that waits, and follows it."""
        submit = self.follow("batch", "submit", job, "--input", self.data, "--request-id", job,
                             "--wait", *more)
        end = time.monotonic() + READY_SECONDS
        while not (found := [b for b in self.answer("batch", "list")
                             if b["job"] == job and b["state"] == "sealed"]):
            self.assertLess(time.monotonic(), end)
        batch = found[0]["batch"]
        return batch, submit, self.follow("batch", "watch", batch, "-q")

    def assert_all_say(self, waiting, *words):
        batch, submit, watch = waiting
        end = time.monotonic() + READY_SECONDS
        while True:
            problem = self.answer("batch", "get", batch).get("problem", "")
            if all(word in problem for word in words):
                break
            self.assertLess(time.monotonic(), end, problem)
        self.assertIn("nothing was counted since 20", problem)
        [listed] = [b for b in self.answer("batch", "list") if b["batch"] == batch]
        self.assertEqual(listed["problem"], problem)
        self.assertIn(problem, self.ask("batch", "get", batch).stdout)
        self.assertIn(f"batch {batch}: waits: {problem}", self.ask("doctor").stdout)
        with muster.Client(self.mesh.server) as client:
            self.assertEqual(client.get(batch).problem, problem)
        for follower in (watch, submit):
            follower.await_line(f"muster: batch {batch} waits: {problem}\n")

    def test_workers_that_are_paused(self):
        self.apply_billing()
        # Once its processor has a listener to pause.
        self.submit("billing", self.retail_rows((3, "0.1", "7", "France")), request_id="first")
        self.answer("worker", "pause", "--all")
        waiting = self.waits("billing")
        self.assert_all_say(waiting, "no processor can work on it: ", "its workers are paused since 20",
                            "`muster worker resume` lets them go on")
        self.answer("worker", "resume", "--all")
        done = self.ask("batch", "watch", waiting[0], "-q")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_handlers_that_are_not_there(self):
        self.apply_billing()
        gone = self.waits("billing", "--handler-version", "gone")
        self.apply_billing("/nowhere/bill.py", name="scriptless")
        scriptless = self.waits("scriptless")
        text = (ROOT / "examples/python_retail/job.yaml").read_text()
        address = free_address()
        self.answer("job", "apply", self.write(
            "job.yaml", text.replace('"localhost:7800"', f'"{address}"')))
        unserved = self.waits("retail_server")
        self.assert_all_say(gone, "no processor has version gone of the handler of job billing, but ")
        self.assert_all_say(scriptless, "no processor can work on it: ", "no script /nowhere/bill.py")
        self.assert_all_say(unserved, "no processor can work on it: ",
                            f"the handler at {address} cannot be ")

    def serve_version(self, version):
        """A handler server; its address, and the file of a job that names it."""
        server = muster.serve_handler(lambda item, results: None, version=version,
                                      listen="localhost:0")
        self.addCleanup(server.stop)
        text = (ROOT / "examples/python_retail/job.yaml").read_text()
        return server.address, self.write(
            "job.yaml", text.replace('"localhost:7800"', f'"{server.address}"'))

    def test_a_handler_server_of_another_version(self):
        address, job = self.serve_version("other")
        wanted = re.search(r'version: "([^"]+)"', job.read_text())[1]
        self.answer("job", "apply", job)
        what = f"the handler at {address} has version other, but the job wants version {wanted}"
        self.assert_all_say(self.waits("retail_server"), "no processor can work on it: ", what)

        run = subprocess.run([harness.MUSTER, "run", job, "--input", self.data, "--data-dir",
                              self.folder / "run", "--handler-patience", "1s", "-q"],
                             capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(run.returncode, 5, run.stderr)
        self.assertIn(f"job.yaml: {what}; start a server of version {wanted} there, then run the "
                      "same command again to go on with batch 1\n", run.stderr)

    def test_processors_that_are_gone_or_parked(self):
        self.apply_billing()
        self.mesh.processors[0].stop()
        waiting = self.waits("billing")
        self.assert_all_say(waiting, "no processor has the handler of job billing: start a processor")
        self.mesh.start_processor("--standby", "go").await_ready()
        followers = [self.follow("batch", "watch", waiting[0], "-q") for _ in range(2)]
        self.assert_all_say((waiting[0], *followers),
                            "is parked, `muster release go` lets it go")
        self.answer("release", "go")
        done = self.ask("batch", "watch", waiting[0], "-q")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_results_that_no_controller_counts(self):
        self.apply_billing()
        self.mesh.controller.stop()
        self.assert_all_say(self.waits("billing"), "not counted, for no controller is heard")


if __name__ == "__main__":
    unittest.main(verbosity=2)
