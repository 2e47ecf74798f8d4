# SPDX-License-Identifier: Apache-2.0
"""The scaling agent at work: it starts and stops real processors as batches come and go.

The handler is slow by design, so that the promise needs several replicas on every machine.
"""

import json
import math
import os
import sys
import time
import unittest

import harness
from harness import retail_input
from live import (ROWS_PER_ITEM, RULES, Burst, LiveAgent, notes, redelivered, seconds, slow_billing,
                  workers)
from scaling_agent_test import OUTAGE_SECONDS, AgentTest

# Larger on a machine that is slow in other things, too: all times grow with it.
SCALE = float(os.environ.get("MUSTER_LIVE_SCALE", "1"))
ITEM_SECONDS = 0.1 * SCALE
SLA_SECONDS = int(20 * SCALE)
COLD_START_SECONDS = 5
MOST = 8
LEARN_ITEMS = 60
BURST_ITEMS = 520  # four replicas' work within the promise
GONE_SECONDS = 180


class LiveTest(AgentTest):
    """Starts an agent that runs replicas, and waits at the end until all of them have gone."""

    def setUp(self):
        super().setUp()
        self.begun = self.folder / "begun"
        job = slow_billing(self.begun, ITEM_SECONDS, self.folder / "slow.py")
        self.answer("job", "apply", self.write("billing.yaml", job))
        self.agent = None

    def tearDown(self):
        if self.agent is not None:
            for keeper in self.agent.replicas.keepers().values():
                os.kill(keeper, 15)
            self.wait_until(lambda: not self.agent.replicas.keepers())
        super().tearDown()

    def write_rules(self, mode="act", most=MOST):
        return self.write("rules.yaml", RULES.format(sla=SLA_SECONDS, most=most))

    def start_live_agent(self, *more):
        self.agent = LiveAgent(self.mesh, self.rules, self.folder / "agent", "--cold-start",
                               f"{COLD_START_SECONDS}s", *more)
        self.agent.program.await_ready()
        self.wait_until(self.agent.leads)

    def number_of_last_decision(self):
        decisions = self.agent.decisions()
        return int(decisions[0].id.rsplit("-", 1)[1]) if decisions else 0

    def decisions_since(self, number):
        """Returns the later decisions, oldest first."""
        return [decision for decision in reversed(self.agent.decisions())
                if int(decision.id.rsplit("-", 1)[1]) > number]

    def await_nobody(self):
        self.wait_until(lambda: not self.agent.replicas.keepers(), GONE_SECONDS)
        self.wait_until(lambda: self.agent.target().replicas.ready == 0)

    def burst(self, name, items):
        """Runs a batch of this many items, and waits until all replicas have gone."""
        data = retail_input(items * ROWS_PER_ITEM)
        before = self.number_of_last_decision()
        begun = time.time()
        with self.agent.replicas as watch:
            result = self.submit("billing", data, name)
            self.await_nobody()
        self.assert_exact(data, items * ROWS_PER_ITEM, result)
        seen = Burst(self.answer("batch", "get", result["batch"]), begun,
                     self.decisions_since(before), watch.most, watch.replica_seconds)
        print(f"\n{name}: {items} items in {seen.took:.1f} s, {seen.replica_seconds:.0f} "
              f"replica-seconds\n{seen.tell()}", file=sys.stderr)
        return seen


@unittest.skipUnless(os.environ.get("MUSTER_LIVE"), "keeps a promise of seconds: needs the cores")
class BurstTest(LiveTest):
    def test_a_burst_into_the_idle_mesh_is_done_in_time_after_one_growth(self):
        recording = self.folder / "recording"
        self.start_live_agent("--record", recording)
        learned = self.burst("february", LEARN_ITEMS)
        self.assertEqual([growth.action.after for growth in learned.growths], [1])

        burst = self.burst("march", BURST_ITEMS)
        [growth] = burst.growths
        inputs = self.agent.call("GetDecision", decision=growth.id).inputs
        self.assertEqual(growth.action.before, 0)
        # The agent decides by its knowledge at that moment, and its patience rounds the number.
        self.assertLessEqual(abs(growth.action.after - self.needed(inputs)), 1)
        self.assertGreater(growth.action.after, 1)
        self.assertEqual(burst.most_replicas, growth.action.after)
        self.assertTrue(growth.feasible, growth.explanation)
        self.assertLess(burst.took, SLA_SECONDS, burst.tell())

        self.assertEqual(burst.shrinks[-1].action.after, 0)
        self.assertEqual(self.agent.target().trouble, "")
        self.assertEqual((learned.batch["attempts"], burst.batch["attempts"]),
                         (LEARN_ITEMS, BURST_ITEMS))
        self.assertEqual(redelivered(self.begun), (0, 0))

        self.assertEqual(self.agent.program.stop(), 0)
        replayed = self.muster("replay", "--recording", recording, "-o", "json")
        self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)
        self.assertTrue(json.loads(replayed.stdout)["same"])

    @staticmethod
    def needed(inputs):
        """Returns the replicas for the whole burst by docs/scaling.md, from the speeds that the
        agent knew."""
        service = seconds(inputs.service_time)
        margin = min(max(2, 0.05 * SLA_SECONDS), SLA_SECONDS / 2)
        run = SLA_SECONDS - service - margin - seconds(inputs.cold_start)
        return math.ceil(BURST_ITEMS / (inputs.items_per_second * run) - 0.5)


class FaultTest(LiveTest):
    ITEMS = 400

    def start_burst(self):
        """Submits a batch, and waits until several replicas have begun to work on it."""
        submission = self.start_submit("billing", retail_input(self.ITEMS * ROWS_PER_ITEM))
        self.wait_until(lambda: len(workers(self.begun)) > 1)
        return submission

    def assert_completes(self, submission):
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, 0, errors)
        rows = self.ITEMS * ROWS_PER_ITEM
        self.assert_exact(retail_input(rows), rows, json.loads(out))

    def test_replicas_go_on_without_their_agent_and_the_next_one_adopts_them(self):
        self.start_live_agent()
        # Fixes the number of replicas.
        self.agent.call("SetOverride", target="billing", replicas=3, hold={"seconds": 3600})
        with self.agent.replicas as watch:
            submission = self.start_burst()
            self.wait_until(lambda: len(watch.keepers()) == 3)
            started = watch.keepers()
            self.agent.program.kill()
            killed_at = len(notes(self.begun))
            self.wait_until(lambda: len(notes(self.begun)) >= killed_at + 50)
            self.assertEqual(watch.keepers(), started)
            self.agent.restart()
            self.wait_until(self.agent.leads)
            self.wait_until(lambda: self.agent.target().replicas.ready == 3)
            self.assert_completes(submission)
            self.assertEqual(watch.keepers(), started)
            self.agent.call("ClearOverride", target="billing")
            self.await_nobody()
        self.assertEqual(watch.most, 3)
        self.assertEqual(workers(self.begun), set(started))
        self.assertEqual(redelivered(self.begun), (0, 0))

    def test_while_the_nats_server_is_away_no_replica_is_stopped(self):
        self.start_live_agent()
        submission = self.start_burst()
        before = self.agent.replicas.keepers()
        self.assertEqual(self.agent.replicas.leaving(), set())
        self.mesh.nats.kill()
        self.wait_until(lambda: not self.agent.leads())
        time.sleep(OUTAGE_SECONDS)  # this is the outage itself
        self.assertLessEqual(before.items(), self.agent.replicas.keepers().items())
        self.mesh.nats.restart()
        self.wait_until(self.agent.leads)
        self.wait_until(lambda: self.agent.target().replicas.ready >= len(before))
        self.assertLessEqual(before.items(), self.agent.replicas.keepers().items())
        self.assertEqual(self.agent.replicas.leaving(), set())
        self.assert_completes(submission)
        self.assertEqual(self.agent.program.stop(), 0)


if __name__ == "__main__":
    harness.main()
