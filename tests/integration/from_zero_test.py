# SPDX-License-Identifier: Apache-2.0
"""A mesh that has no processors while it has no work: batches of a linked handler wake it.

Its handler is linked into processors, so the handler version of a batch is unknown while no processor
runs.
"""

import json
import os
import sqlite3
import sys

import harness
from harness import retail_input
from live import LiveAgent
from scaling_agent_test import AgentTest

ROWS = 20_000
ITEMS = 40  # of 500 transactions each
RULES = """mode: act
targets:
  billing: {kind: process, name: muster-processor, queues: [retail-in], sla: {max: 60s}, min: 0, max: 3}
"""
GONE_SECONDS = 180
AFTER_AN_UPGRADE = os.environ["MUSTER_NEXT_PROCESSOR_PROGRAM"]


class FromZeroTest(AgentTest):
    def setUp(self):
        super().setUp()
        self.answer("job", "apply", harness.RETAIL_JOB)
        self.data = retail_input(ROWS)
        self.agent = None

    def tearDown(self):
        if self.agent is not None:
            for keeper in self.agent.replicas.keepers().values():
                os.kill(keeper, 15)
            self.wait_until(lambda: not self.agent.replicas.keepers())
        super().tearDown()

    def write_rules(self, mode="act", most=3):
        return self.write("rules.yaml", RULES)

    def start_live_agent(self, **options):
        self.agent = LiveAgent(self.mesh, self.rules, self.folder / "agent", "--cold-start", "5s",
                               **options)
        self.agent.program.await_ready()
        self.wait_until(self.agent.leads)
        self.assertEqual(self.agent.replicas.keepers(), {})

    def await_nobody(self):
        self.wait_until(lambda: not self.agent.replicas.keepers(), GONE_SECONDS)
        self.wait_until(lambda: not [worker for worker in self.answer("worker", "list")
                                     if worker["phase"] != "leaving"])

    def versions_of(self, batch):
        """Counts the items of a batch by the handler version that worked on them."""
        report = sqlite3.connect(self.folder / "controller/report.db")
        try:
            return dict(report.execute("SELECT handler_version, count(*) FROM muster_items "
                                       "WHERE batch = ? GROUP BY handler_version", (batch,)))
        finally:
            report.close()

    def assert_done_unbound(self, result, version):
        """Asserts that processors of that version counted each item once."""
        print(f"\ndone {result['seconds']:.1f} s after it was submitted", file=sys.stderr)
        self.assert_exact(self.data, ROWS, result)
        batch = self.answer("batch", "get", result["batch"])
        self.assertEqual((batch["handler_version"], batch["duplicates_dropped"]), ("", 0))
        self.assertEqual(self.versions_of(result["batch"]), {version: ITEMS})
        lines = self.ask("batch", "receipt", result["batch"]).stdout.splitlines()
        self.assertIn("handler_version ", lines)
        self.assertIn(f"items_by_version {ITEMS} {version}", lines)

    def test_each_batch_wakes_the_mesh_also_after_an_upgrade_that_nobody_was_there_to_see(self):
        self.start_live_agent()
        idle = self.ask("doctor")
        self.assertIn("ok: processor: none is there", idle.stdout)
        self.assertEqual(idle.returncode, 0, idle.stdout)
        with self.agent.replicas as watch:
            self.assert_done_unbound(self.submit("retail", self.data, "february"), "1")
            self.await_nobody()
        self.assertGreater(watch.most, 0)

        self.assertEqual(self.agent.program.stop(), 0)
        self.start_live_agent(processor=AFTER_AN_UPGRADE)
        self.assert_done_unbound(self.submit("retail", self.data, "march"), "2")
        self.await_nobody()

    def test_a_batch_waits_for_the_agent_that_finds_it_and_the_doctor_says_so(self):
        submission = self.start_submit("retail", self.data)
        self.await_batch(1, lambda batch: batch["state"] == "sealed")
        waiting = self.ask("doctor")
        self.assertIn("wrong: batch 1: waits: no processor has the handler of job retail",
                      waiting.stdout)
        self.assertNotEqual(waiting.returncode, 0)
        self.start_live_agent()
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, 0, errors)
        self.assert_done_unbound(json.loads(out), "1")
        self.await_nobody()

    def test_a_batch_that_finds_processors_is_bound_to_their_version(self):
        processor = self.mesh.start_role("processor", None, "--threads", 1)
        processor.await_ready()
        result = self.submit("retail", self.data)
        self.assert_exact(self.data, ROWS, result)
        self.assertEqual(self.answer("batch", "get", result["batch"])["handler_version"], "1")


if __name__ == "__main__":
    harness.main()
