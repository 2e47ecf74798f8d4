#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scaling agent and hundreds of pods: what it asks of a real API server, and how long answers take.

kwok plays the nodes: pods get Ready, and nothing runs in them. tests/kubernetes/with_fake_nodes starts the
cluster; the mesh of the agent runs on this machine.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import harness  # noqa: E402
from scaling_agent_test import Agent, AgentTest  # noqa: E402

KUBECONFIG = os.environ.get("MUSTER_TEST_KUBECONFIG")
REPLICAS = 300
LEFT = 150  # after an override
RULES = """mode: act
targets:
  billing: {{kind: deployment, name: sleepers, queues: [billing-in], sla: {{max: 60s}}, min: {least}, max: {most}}}
"""
SLEEPERS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: sleepers}
spec:
  replicas: 0
  selector: {matchLabels: {app: sleepers}}
  template:
    metadata: {labels: {app: sleepers}}
    spec:
      automountServiceAccountToken: false
      containers: [{name: sleeper, image: nothing}]
"""
# verb and subresource of the calls that nothing but the agent makes
SCALE_CALLS = re.compile(r'apiserver_request_total\{([^}]*resource="deployments"[^}]*subresource="scale"[^}]*)\} (\d+)')
POD_PATCHES = re.compile(r'apiserver_request_total\{([^}]*resource="pods"[^}]*subresource=""[^}]*verb="PATCH"[^}]*)\} (\d+)')
SCALE_SECONDS = re.compile(
    r'apiserver_request_duration_seconds_(sum|count)\{[^}]*resource="deployments"[^}]*subresource="scale"[^}]*'
    r'verb="(\w+)"[^}]*\} ([0-9.e+-]+)')


def kubectl(*arguments, stdin=None):
    return subprocess.run(["kubectl", "--kubeconfig", KUBECONFIG, *arguments], input=stdin, check=True,
                          capture_output=True, text=True, timeout=60).stdout


class Calls:
    """The calls of the agent so far, as the API server counts them."""

    def __init__(self):
        text = kubectl("get", "--raw", "/metrics")
        self.by_verb = collections.Counter()
        for labels, count in SCALE_CALLS.findall(text):
            self.by_verb[re.search('verb="(.*?)"', labels)[1] + " scale"] += int(count)
        for _, count in POD_PATCHES.findall(text):
            self.by_verb["PATCH pods"] += int(count)
        self.seconds = collections.defaultdict(lambda: [0.0, 0.0])
        for kind, verb, value in SCALE_SECONDS.findall(text):
            self.seconds[verb][kind == "count"] += float(value)

    def since(self, before):
        return {verb: count - before.by_verb[verb] for verb, count in self.by_verb.items()
                if count > before.by_verb[verb]}

    def mean_ms(self, before, verb):
        total, count = (now - then for now, then in zip(self.seconds[verb], before.seconds[verb]))
        return 1000 * total / count if count else 0.0


@unittest.skipUnless(KUBECONFIG, "MUSTER_TEST_KUBECONFIG names no cluster")
class HundredsOfPodsTest(AgentTest):
    def write_rules(self, mode="act", most=REPLICAS):
        return self.write("rules.yaml", RULES.format(least=0, most=most))

    def ready(self):
        return int(kubectl("get", "deployment", "sleepers", "--output", "jsonpath={.status.readyReplicas}") or 0)

    def test_hundreds_of_replicas_take_few_calls(self):
        kubectl("apply", "--filename", "-", stdin=SLEEPERS)
        self.addCleanup(kubectl, "delete", "deployment", "sleepers")
        agent = Agent(self.mesh, self.rules, "--kubeconfig", KUBECONFIG, "--kubernetes-namespace", "default",
                      actuator="kubernetes")
        agent.program.await_ready()
        self.wait_until(agent.leads)
        before, begun = Calls(), time.monotonic()
        self.write("rules.yaml", RULES.format(least=REPLICAS, most=REPLICAS))
        self.wait_until(lambda: self.ready() == REPLICAS, 180)
        took, calls = time.monotonic() - begun, Calls()
        self.wait_until(lambda: agent.target().replicas.starting + agent.target().replicas.ready == REPLICAS)
        counted = calls.since(before)
        print(f"\n  {REPLICAS} replicas ready in {took:.1f} s; calls of the agent: {counted}; mean of the API server: "
              f"GET {calls.mean_ms(before, 'GET'):.1f} ms, PUT {calls.mean_ms(before, 'PUT'):.1f} ms", file=sys.stderr)
        # One order for any number of replicas. A look each second reads the scale.
        self.assertLessEqual(counted.get("PUT scale", 0), 3)
        self.assertLessEqual(counted.get("GET scale", 0), 3 * took + 10)
        self.assertEqual(counted.get("PATCH pods", 0), 0)

        before, begun = Calls(), time.monotonic()
        time.sleep(20)
        counted = Calls().since(before)
        print(f"  calls in {time.monotonic() - begun:.0f} s while nothing changes: {counted}", file=sys.stderr)
        self.assertNotIn("PUT scale", counted)

        before, begun = Calls(), time.monotonic()
        self.write("rules.yaml", RULES.format(least=0, most=REPLICAS))
        # The agent refuses it until it has read the rules again.
        self.wait_until(lambda: self.ask("scale", "override", "billing", LEFT, "--for", "10m").returncode == 0)
        self.wait_until(lambda: self.ready() == LEFT, 180)
        took, calls = time.monotonic() - begun, Calls()
        counted = calls.since(before)
        print(f"  {REPLICAS - LEFT} of them gone in {took:.1f} s; calls of the agent: {counted}; mean of the API server: "
              f"PUT {calls.mean_ms(before, 'PUT'):.1f} ms", file=sys.stderr)
        # The pods send no heartbeats: no agent can tell who should go first, and Kubernetes chooses.
        self.assertEqual(counted.get("PATCH pods", 0), 0)
        self.assertLessEqual(counted.get("PUT scale", 0), 3)


if __name__ == "__main__":
    harness.main()
