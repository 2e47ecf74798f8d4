# SPDX-License-Identifier: Apache-2.0
"""scripts/mesh with a scaling agent: it comes up, works off a batch from zero processors, and leaves no
process behind.

MUSTER_PRESET names the existing build to run.
"""

import json
import os
import re
import subprocess
import time

import harness
from harness import ROOT, MusterTest, retail_input
from mesh import free_ports

PRESET = os.environ["MUSTER_PRESET"]
PORTS = 111  # of a mesh, from the initiator's on, those of metrics included
GROW_SECONDS = 120
# Its programs show their metrics where they do by themselves.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "MUSTER_METRICS"}


class MeshTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.port = free_ports(PORTS)
        self.server = f"127.0.0.1:{self.port}"
        self.folder_of_mesh = self.folder / "mesh"
        self.addCleanup(self.mesh, "down", "--delete")

    def mesh(self, *arguments):
        return subprocess.run(
            [ROOT / "scripts/mesh", *map(str, arguments)], capture_output=True, text=True,
            env={**ENVIRONMENT, "MUSTER_MESH_DIR": str(self.folder_of_mesh)},
            timeout=harness.TIMEOUT_SECONDS, cwd=self.folder)

    def up(self, *arguments):
        done = self.mesh("up", "--port", self.port, "--preset", PRESET, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def answer(self, *arguments):
        done = self.muster(*arguments, "--server", self.server, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def processes(self):
        """Returns the command lines of all living processes of this mesh."""
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
        return [line for line in listed.stdout.splitlines() if str(self.folder_of_mesh) in line]


class ScalingTest(MeshTest):
    def test_it_grows_from_nothing_and_goes_down_in_the_midst_of_work(self):
        self.up("--scaling")
        status = self.mesh("status")
        self.assertEqual(status.returncode, 0, status.stdout)
        self.assertIn("scaling-agent", status.stdout)
        self.assertNotIn("processor", status.stdout)

        # No processor runs that could say which handler version the batch has.
        data = retail_input(20000)
        self.answer("job", "apply", harness.RETAIL_JOB)
        result = self.answer("batch", "submit", "retail", "--input", data, "--wait")
        self.assertTrue(result["complete"])
        self.assert_all_accounted_for(result)
        self.assertNotEqual(self.replicas(), [])

        # Now in the midst of work.
        self.answer("job", "apply", ROOT / "examples/retail/job_python.yaml")
        self.answer("batch", "submit", "retail_python", "--input", retail_input(200000))
        end = time.monotonic() + GROW_SECONDS
        while "ready" not in self.replicas():
            self.assertLess(time.monotonic(), end, self.mesh("status").stdout)
            time.sleep(0.1)
        down = self.mesh("down")
        self.assertEqual(down.returncode, 0, down.stdout + down.stderr)
        self.assertEqual(self.processes(), [])

        # A fixed set takes the agent's place, and finishes it.
        self.assertIn("processor-1", self.up("--processors", "1"))
        self.assertEqual(self.replicas(), [])
        self.assertNotIn("scaling-agent", self.mesh("status").stdout)
        done = self.muster("batch", "watch", "2", "--server", self.server)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def replicas(self):
        """Returns the state of each of the agent's processors."""
        return [line.split()[1] for line in self.mesh("status").stdout.splitlines()
                if line.startswith("processor-") and "127.0.0.1" not in line]


class ReadmeTest(MeshTest):
    def test_its_line_shows_the_metrics_of_the_mesh(self):
        self.up("--processors", "1")
        self.answer("job", "apply", harness.RETAIL_JOB)
        self.answer("batch", "submit", "retail", "--input", retail_input(2000), "--wait")
        [line] = re.findall(r"^curl .*:7792/metrics.*$", (ROOT / "README.md").read_text(), re.MULTILINE)
        shown = subprocess.run(["bash", "-c", line.replace(":7792/", f":{self.port + 92}/")],
                               capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertIn('muster_transactions_total{queue="retail-in",outcome="aggregated"}', shown.stdout,
                      shown.stderr)


class UsageTest(MusterTest):
    def test_rules_that_are_not_there_and_both_kinds_at_a_time_are_misuse(self):
        for wrong in (["--scaling", "none.yaml"], ["--scaling", "--processors", "2"]):
            done = subprocess.run([ROOT / "scripts/mesh", "up", *wrong], capture_output=True,
                                  text=True, cwd=self.folder, timeout=harness.TIMEOUT_SECONDS,
                                  env={**os.environ, "MUSTER_MESH_DIR": str(self.folder / "mesh")})
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertFalse((self.folder / "mesh").exists())


if __name__ == "__main__":
    harness.main()
