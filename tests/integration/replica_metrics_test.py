# SPDX-License-Identifier: Apache-2.0
"""Replicas that a scaling agent starts as processes serve metrics, and Prometheus is told where."""

import json
import os
import urllib.request

import harness
from live import LiveAgent
from scaling_agent_test import AgentTest

RULES = """mode: act
targets:
  billing: {kind: process, name: muster-processor, queues: [retail-in], sla: {max: 300s}, min: 2, max: 2}
"""


class ReplicaMetricsTest(AgentTest):
    def setUp(self):
        super().setUp()
        self.answer("job", "apply", harness.RETAIL_JOB)
        self.agent = None

    def tearDown(self):
        if self.agent is not None:
            self.agent.program.kill()
            for keeper in self.agent.replicas.keepers().values():
                os.kill(keeper, 15)
            self.wait_until(lambda: not self.agent.replicas.keepers())
        super().tearDown()

    def write_rules(self, mode="act", most=2):
        return self.write("rules.yaml", RULES)

    def targets(self):
        """The address of each replica that the file names, by its name."""
        try:
            listed = json.loads((self.folder / "agent/replicas/prometheus.json").read_text())
        except FileNotFoundError:
            return {}
        self.assertEqual({one["labels"]["target"] for one in listed} - {"billing"}, set())
        return {one["labels"]["replica"]: one["targets"][0] for one in listed}

    def await_targets(self, count):
        self.wait_until(lambda: len(self.targets()) == count
                        and self.targets().keys() == self.agent.replicas.keepers().keys())
        return self.targets()

    def page(self, address):
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=harness.TIMEOUT_SECONDS) as answer:
            return answer.read().decode()

    def start(self, *more):
        self.agent = LiveAgent(self.mesh, self.rules, self.folder / "agent", *more)
        self.agent.program.await_ready()

    def test_each_replica_serves_metrics_at_a_port_of_its_own_and_is_told_to_prometheus(self):
        self.start("--replica-metrics", "127.0.0.1")
        before = self.await_targets(2)
        self.assertEqual(len(set(before.values())), 2)
        for address in before.values():
            self.assertIn("muster_dequeue_tasks{", self.page(address))
        # The one that follows a dead one takes its place in the file.
        keepers = self.agent.replicas.keepers()
        gone = sorted(keepers)[0]
        os.kill(keepers[gone], 9)
        self.wait_until(lambda: gone not in self.targets() and len(self.targets()) == 2)
        for address in self.await_targets(2).values():
            self.page(address)

    def test_they_serve_none_unless_it_is_asked_for(self):
        self.start()
        self.wait_until(lambda: len(list(self.agent.replicas.folder.glob("*/ready"))) == 2)
        self.assertEqual(self.targets(), {})
        self.assertEqual(list(self.agent.replicas.folder.glob("*/metrics")), [])


if __name__ == "__main__":
    harness.main()
