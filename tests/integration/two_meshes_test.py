# SPDX-License-Identifier: Apache-2.0
"""Two whole meshes on one NATS server, as by mistake: every total is exact, or is said not to be.

Each has an initiator, a controller and processors of its own, with data directories of their own. Both work on the same
queues, so one controller alone may count.
"""

import time

import harness
from harness import looks, retail_input
from mesh import READY_SECONDS, Mesh, free_address
from mesh_case import MeshTest

ROWS = 300


class TwoMeshes(Mesh):
    """Two meshes that start at the same moment."""

    def start(self):
        self.nats = self.start_nats()
        self.nats.await_ready()
        self.others_server = free_address()
        self.initiators = [self.start_role("initiator", self.server),
                           self.start_role("initiator", self.others_server, data="others-initiator")]
        for initiator in self.initiators:
            initiator.await_ready()
        self.controllers = [self.start_role("controller", data=name)
                            for name in ("controller", "others-controller")]
        self.processors = self.start_processors() + self.start_processors()
        for processor in self.processors:
            processor.await_ready()


class TwoMeshesTest(MeshTest):
    def make_mesh(self):
        return TwoMeshes(self.folder, self.nats_server, self.nats_servers)

    def setUp(self):
        super().setUp()
        self.counting, self.refused = self.tell_apart()
        self.servers = (self.mesh.server, self.mesh.others_server)
        self.mesh.reporter = self.counting.argv[self.counting.argv.index("--listen") + 1]
        self.apply_billing()

    def tell_apart(self):
        """The controller that counts, and the other one, which has ended."""
        for _ in looks(READY_SECONDS):
            for one, other in (self.mesh.controllers, self.mesh.controllers[::-1]):
                if other.process.poll() is not None:
                    one.await_ready()
                    return one, other
        raise self.failureException("".join(
            line for controller in self.mesh.controllers for line in controller.log.lines))

    def both(self):
        """Asks one initiator after the other; gives the request id of its batch."""
        for server, request_id in zip(self.servers, ("march", "april")):
            self.mesh.server = server
            yield request_id

    def assert_both_count(self):
        data = retail_input(ROWS)
        for request_id in self.both():
            self.assert_exact(data, ROWS, self.submit("billing", data, request_id))

    def test_the_other_controller_is_refused_and_what_both_take_in_is_counted_once(self):
        self.assertNotEqual(self.refused.wait(), 0)
        self.assertIn("this mesh counts into report ", "".join(self.refused.log.lines))
        self.assert_both_count()

    def test_while_the_one_that_counts_is_away_nothing_is_said_to_be_exact(self):
        self.counting.kill()
        self.refused.start()
        self.assertNotEqual(self.refused.wait(), 0)
        for request_id in self.both():
            self.answer("batch", "submit", "billing", "--input", retail_input(ROWS), "--request-id", request_id)
            [batch] = self.answer("batch", "list")
            self.assertEqual(batch["state"], "sealed")
            self.assertEqual(self.ask("batch", "watch", batch["batch"], "--wait-timeout", "0s").returncode, 124)
            self.assertNotEqual(self.ask("report", batch["batch"]).returncode, 0)
            self.assertNotEqual(self.ask("doctor").returncode, 0)
        self.counting.restart()
        self.assert_both_count()

    def test_a_report_that_takes_the_place_of_the_one_is_said_to_lack_what_that_has(self):
        batch = self.submit("billing", retail_input(ROWS))["batch"]
        said = "".join(self.refused.log.lines)
        self.counting.kill()
        self.refused.argv += ["--replace-report", said.partition("--replace-report ")[2].split()[0].strip('"')]
        self.refused.restart()
        end = time.monotonic() + READY_SECONDS
        lacks = f"batch {batch}: it is complete in the ledger, and the report has 0 of its {ROWS} transactions"
        while f"wrong: {lacks}" not in (found := self.ask("doctor")).stdout:
            self.assertLess(time.monotonic(), end, found.stdout)  # a heartbeat tells the initiator who counts
        self.assertNotEqual(found.returncode, 0)
        # As docs/reliability.md says.
        for command, code in ((("batch", "get"), 6), (("report",), 1)):
            self.assertEqual(self.ask(*command, batch).returncode, code, command)
        said = self.ask("batch", "get", batch).stderr
        self.assertIn(lacks, said)
        self.assertIn("muster check --repair", said)


if __name__ == "__main__":
    harness.main()
