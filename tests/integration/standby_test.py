# SPDX-License-Identifier: Apache-2.0
"""Processors that are parked until a release, and `muster release`."""

import json
import time

import harness
from harness import retail_input
from mesh import READY_SECONDS, Mesh
from mesh_case import MeshTest

ROWS = 1000


class StandbyMesh(Mesh):
    """All processors are parked."""

    PROCESSORS = 3

    def start_processors(self):
        return [self.start_parked() for _ in range(self.PROCESSORS)]

    def start_parked(self):
        return self.start_role("processor", None, "--threads", 2, "--standby", "go")


class StandbyTest(MeshTest):
    def make_mesh(self):
        return StandbyMesh(self.folder, self.nats_server, self.nats_servers)

    def status(self):
        return self.answer("release", "go", "--status")

    def await_status(self, reached):
        end = time.monotonic() + READY_SECONDS
        while not reached(status := self.status()):
            self.assertLess(time.monotonic(), end, status)
        return status

    def await_parked(self, count):
        return self.await_status(lambda status: status["workers_parked"] == count)

    def await_left(self, count):
        return self.await_status(lambda status: status["workers_left"] == count)

    def test_parked_processors_take_nothing_before_the_release_and_all_of_it_after(self):
        self.apply_billing()
        parked = self.await_parked(StandbyMesh.PROCESSORS)
        self.assertEqual((parked["armed_epoch"], parked["released_epoch"]), (1, 0))
        for program in self.mesh.processors:
            program.await_line("parked: takes no item before a release")
        data = retail_input(ROWS)
        submit = self.start_submit("billing", data)
        self.await_batch(1, lambda batch: batch["state"] == "sealed")
        workers = self.answer("worker", "list", "--job", "billing")
        self.assertEqual({(worker["phase"], worker["trouble"]) for worker in workers},
                         {("parked", "parked until release go")})
        doctor = self.ask("doctor")
        self.assertIn("it was started to wait for release go", doctor.stdout)
        self.assertEqual(self.answer("batch", "list")[0]["items_counted"], 0)
        self.answer("release", "go")
        out, errors = submit.communicate(timeout=READY_SECONDS)
        self.assertEqual(submit.returncode, 0, errors)
        self.assert_exact(data, ROWS, json.loads(out))
        left = self.await_left(StandbyMesh.PROCESSORS)
        self.assertGreater(left["last_left_after_seconds"], 0)
        self.assertNotIn("release go", self.ask("doctor").stdout)

    def test_it_can_be_armed_again_and_who_starts_between_goes_at_once(self):
        self.await_parked(StandbyMesh.PROCESSORS)
        self.answer("release", "go")
        self.await_left(StandbyMesh.PROCESSORS)
        self.mesh.start_parked().await_line("released: takes items")
        self.assertEqual(self.answer("release", "go", "--arm")["armed_epoch"], 2)
        late = self.mesh.start_parked()
        self.await_parked(1)
        self.assertEqual(self.answer("release", "go")["released_epoch"], 2)
        late.await_line("released: takes items")

    def test_a_release_that_a_killed_server_kept_lets_go_whoever_missed_it(self):
        self.await_parked(StandbyMesh.PROCESSORS)
        cut_off = self.mesh.processors[0]
        cut_off.freeze()
        self.answer("release", "go")
        self.mesh.nats.kill()  # what it had not sent yet is lost
        cut_off.thaw()
        self.mesh.nats.restart()
        cut_off.await_line("released: takes items")

    def test_a_parked_processor_ends_at_once_and_its_presence_with_it(self):
        self.await_parked(StandbyMesh.PROCESSORS)
        self.assertEqual(self.mesh.processors[0].stop(), 0)
        self.await_parked(StandbyMesh.PROCESSORS - 1)
        self.mesh.processors[1].kill()
        self.await_parked(StandbyMesh.PROCESSORS - 2)


if __name__ == "__main__":
    harness.main()
