# SPDX-License-Identifier: Apache-2.0
"""Services that are told to stop while the NATS server is away end in order, and lose nothing."""

import signal

import harness
from mesh_case import FaultTest, MeshTest


class StopTest(FaultTest):

    def make_mesh(self):
        mesh = MeshTest.make_mesh(self)
        mesh.role_options = ["--drain-grace", "6s"]
        return mesh

    def test_a_stop_ends_with_0_while_the_nats_server_is_away_and_work_is_in_hand(self):
        self.mesh.nats.kill()
        self.gate.open()  # so that there are results, which nobody takes
        roles = [*self.mesh.processors, self.mesh.controller, self.mesh.initiator]
        for role in roles:
            role.await_line("the NATS connection is lost")
        # All at once, as when a host goes down.
        for role in roles:
            role.signal(signal.SIGTERM)
        for role in roles:
            said = lambda: "".join(role.log.lines)
            self.assertEqual(role.wait(), 0, said())
            self.assertNotIn("within its grace", said())
            self.assertIn("msg=drained", said())
        self.mesh.nats.restart()
        for role in reversed(roles):
            role.restart()
        self.assert_ends_exactly_once()


if __name__ == "__main__":
    harness.main()
