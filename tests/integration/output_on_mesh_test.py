# SPDX-License-Identifier: Apache-2.0
"""Values back on a mesh of real programs over NATS: kill -9 of every role in mid-batch changes no byte of
what comes out."""

import harness
from mesh_case import FREE_ITEMS, Gate, MeshTest
from output_test import HANDLER, OutputCase, as_csv, as_json_lines, expected_records

ROWS = 3000

# Most items wait until a test opens the gate.
GATED = HANDLER.replace('for line in sys.stdin:\n', f'''for line in sys.stdin:
    index = int(json.loads(line)["item"].split(":")[0].split("/")[1])
    if index >= {FREE_ITEMS}:
        open("GATE").close()
''')


class OutputOnMeshTest(MeshTest, OutputCase):
    def test_records_survive_the_death_of_every_role(self):
        gate = Gate(self.folder / "gate")
        self.addCleanup(gate.open)
        job = self.make_job(GATED.replace("GATE", str(gate.path)), attempts=10)
        self.answer("job", "apply", job)
        data = self.make_input(ROWS)
        submit = self.start_submit("squares", data)
        self.await_busy(2)
        done = self.ask("batch", "output", 1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not complete", done.stderr)
        roles = [*self.mesh.processors, self.mesh.initiator, self.mesh.controller]
        for role in roles:
            role.kill()
        for role in (self.mesh.initiator, self.mesh.controller, *self.mesh.processors):
            role.restart()
        gate.open()
        out, err = submit.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submit.returncode, 0, out + err)
        where = ("--server", self.mesh.server, "--controller", self.mesh.reporter)
        records = expected_records(ROWS)
        self.assertEqual(self.output(1, *where), as_csv(records))
        # The controller's death between two readings changes nothing.
        self.mesh.controller.kill()
        self.mesh.controller.restart()
        self.assertEqual(self.output(1, "-o", "json", *where), as_json_lines(records))
        # Batches that have ended lose their records with their rows.
        self.assertEqual(self.ask("batch", "delete", 1).returncode, 0)
        gone = self.ask("batch", "output", 1, "--controller", self.mesh.reporter)
        self.assertEqual(gone.returncode, 1, gone.stdout)

    def test_a_job_without_outputs_says_so(self):
        self.apply_billing()
        batch = self.submit("billing", harness.retail_input(300))["batch"]
        done = self.ask("batch", "output", batch, "--controller", self.mesh.reporter)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no outputs", done.stderr)


if __name__ == "__main__":
    harness.main()
