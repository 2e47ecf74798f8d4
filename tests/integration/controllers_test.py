# SPDX-License-Identifier: Apache-2.0
"""Two controllers of one mesh: one counts, the other is standby and takes over.

The programs, the NATS server and the report are real. Each test breaks the one that counts in mid-batch.
"""

import time

import harness
from mesh import READY_SECONDS, Mesh, free_address
from mesh_case import FaultTest, MeshTest

OWNERSHIP_LEASE = "4s"


class ControllersMesh(Mesh):
    def start_role(self, role, address=None, *more, data=None):
        if role == "controller":
            more = ("--ownership-lease", OWNERSHIP_LEASE, *more)
        return super().start_role(role, address, *more, data=data)

    def start_controller(self, *more, data="controller"):
        """Starts another controller, and does not wait until it is ready; returns its address, too."""
        address = free_address()
        return address, self.start_role("controller", address, *more, data=data)


def instance_of(program):
    """The name of a program that listens."""
    program.await_line("msg=listening")
    line = next(line for line in program.log.lines if "msg=listening" in line)
    return next(word for word in line.split() if word.startswith("instance=")).split("=")[1]


class StandbyTest(FaultTest):
    def make_mesh(self):
        return ControllersMesh(self.folder, self.nats_server, self.nats_servers)

    def setUp(self):
        super().setUp()
        self.address, self.second = self.mesh.start_controller()
        self.second.await_line("standby: ")

    def assert_the_second_counts(self):
        self.second.await_ready()
        self.mesh.reporter = self.address

    def test_it_is_seen_and_is_not_called(self):
        first = instance_of(self.mesh.controller)
        self.second.await_line(f"standby: {first} counts the results of this mesh")
        standby = f"controller {instance_of(self.second)}: is standby, and counts when {first} ends"
        end = time.monotonic() + READY_SECONDS
        while standby not in (said := self.ask("doctor").stdout):
            self.assertLess(time.monotonic(), end, said)  # a heartbeat tells it
        self.assertNotIn("2 are there", said)
        partitions = self.answer("partition", "list", "controller/local")
        self.assertEqual([partition["owner"] for partition in partitions], [first])
        self.assert_ends_exactly_once()

    def test_it_takes_over_from_one_that_stops(self):
        self.assertEqual(self.mesh.controller.stop(), 0)
        self.assert_the_second_counts()
        self.assert_ends_exactly_once()

    def test_it_takes_over_from_one_that_is_killed(self):
        self.mesh.controller.kill()
        self.assert_the_second_counts()
        self.assert_ends_exactly_once()

    def test_one_that_is_killed_and_started_again_goes_on_at_once(self):
        self.mesh.controller.kill()
        self.mesh.controller.restart()
        self.assertFalse(any("msg=ready" in line for line in self.second.log.lines))
        self.assert_ends_exactly_once()

    def test_one_that_was_suspended_counts_nothing_twice(self):
        self.mesh.controller.freeze()
        self.addCleanup(self.mesh.controller.thaw)
        self.assert_the_second_counts()
        self.gate.open()
        # Both live while results come in.
        self.mesh.controller.thaw()
        self.mesh.controller.await_line("this controller counts no more")
        self.assert_ends_exactly_once()
        self.second.stop()
        self.mesh.controller.await_line('"this controller counts"', times=2)


class SeparateReportsTest(MeshTest):
    def make_mesh(self):
        return ControllersMesh(self.folder, self.nats_server, self.nats_servers)

    def test_a_controller_with_another_report_is_refused_until_it_replaces_the_one(self):
        self.apply_billing()
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.submit("billing", data)
        _, other = self.mesh.start_controller(data="other")
        other.await_line("this mesh counts into report ")
        self.assertNotEqual(other.wait(), 0)
        said = "".join(other.log.lines)
        self.assertIn(f"of {instance_of(self.mesh.controller)}, and this controller has a new one", said)
        report = said.partition("--replace-report ")[2].split()[0].strip('"')
        self.mesh.controller.kill()
        address, other = self.mesh.start_controller("--replace-report", report, data="other")
        other.await_ready()
        self.mesh.reporter = address
        # The one before is out now.
        self.mesh.controller.start()
        self.mesh.controller.await_line("this mesh counts into report ")
        self.assertNotEqual(self.mesh.controller.wait(), 0)
        self.assertEqual(self.submit("billing", data, request_id="april")["transactions"], 1)


if __name__ == "__main__":
    harness.main()
