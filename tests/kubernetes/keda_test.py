#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real KEDA on a real API server scales a pool of the chart by the number of a real scaling agent.

KEDA's operator and its metrics adapter run as programs of this machine, as scripts/kubernetes build keda makes
them; tests/kubernetes/with_cluster starts the cluster, which has no nodes: pods are made, and wait. The mesh of
the agent runs on this machine, too.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import unittest

import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "integration"), str(HERE.parent / "helm")]
import chart  # noqa: E402
import harness  # noqa: E402
from mesh import Program, free_address  # noqa: E402
from scaling_agent_test import Agent, AgentTest  # noqa: E402

KUBECONFIG = os.environ.get("MUSTER_TEST_KUBECONFIG")
PROGRAMS = pathlib.Path(subprocess.run([HERE / "cluster", "programs"], check=True, capture_output=True,
                                       text=True).stdout.strip())
KEDA = max(PROGRAMS.glob("keda-*"), default=None)
POOL, SPACE = "muster-processor-default", "mesh"
RULES = f"""targets:
  default: {{kind: deployment, name: {POOL}, queues: [retail-in], sla: {{max: 60s}}, max: 5, actuator: external}}
"""
# What the chart renders of the pool, with a poll that comes long after a push.
POLL_SECONDS = 20
VALUES = ("scaler.mode=keda", "pools.default.jobs={retail}", "pools.default.scale.max=5",
          f"scaler.keda.pollingInterval={POLL_SECONDS}")
PATIENCE_SECONDS = 120  # for programs that have to start, and an HPA that looks each 15 s


def kubectl(*arguments, stdin=None):
    return subprocess.run([PROGRAMS / "kubectl", "--kubeconfig", KUBECONFIG, *arguments], input=stdin, check=True,
                          stdout=subprocess.PIPE, text=True, timeout=60).stdout


def apply(*manifests):
    kubectl("apply", "--server-side", "--filename", "-", stdin=yaml.safe_dump_all(manifests))


def make_certificate(folder):
    """What KEDA's two programs and the API server know each other by."""
    authority = pathlib.Path(KUBECONFIG).parent
    (folder / "ca.crt").write_bytes((authority / "ca.crt").read_bytes())
    subprocess.run(
        f"openssl req -newkey rsa:2048 -nodes -keyout tls.key -subj /CN=keda -out tls.csr 2> /dev/null && "
        f"openssl x509 -req -in tls.csr -CA {authority}/ca.crt -CAkey {authority}/ca.key -CAcreateserial -days 2 "
        f"-extfile <(echo subjectAltName=DNS:localhost,DNS:keda-metrics-apiserver.keda.svc) -out tls.crt 2> /dev/null",
        shell=True, executable="/bin/bash", check=True, cwd=folder)


@unittest.skipUnless(KUBECONFIG, "MUSTER_TEST_KUBECONFIG names no cluster")
@unittest.skipUnless(KEDA, "KEDA is not built: scripts/kubernetes build keda")
class KedaTest(AgentTest):
    def write_rules(self, mode="act", most=5):
        return self.write("rules.yaml", RULES)

    def setUp(self):
        super().setUp()
        if "keda.sh" in kubectl("api-versions"):
            self.skipTest("this cluster has a KEDA of its own")
        self.answer("job", "apply", harness.RETAIL_JOB)
        self.agent = Agent(self.mesh, self.rules, "--kubeconfig", KUBECONFIG, "--kubernetes-namespace", SPACE,
                           actuator="kubernetes")
        self.agent.program.await_ready()
        self.wait_until(self.agent.leads)
        self.install_keda()
        self.install_pool()

    def install_keda(self):
        certificates = self.folder / "certificates"
        certificates.mkdir()
        make_certificate(certificates)
        for path in sorted((KEDA / "config/crd/bases").glob("*.yaml")):
            kubectl("apply", "--server-side", "--filename", path)
        apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keda"}},
              {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
        for name in ("role", "role_binding"):
            kubectl("apply", "--server-side", "--filename", KEDA / f"config/metrics-server/{name}.yaml")
        between, shown = free_address(), free_address()
        environment = ["env", f"KUBECONFIG={KUBECONFIG}", "WATCH_NAMESPACE=", "POD_NAMESPACE=keda",
                       "KEDA_CLUSTER_OBJECT_NAMESPACE=keda"]
        port = between.rpartition(":")[2]
        self.operator = self.mesh.add(Program(
            [*environment, KEDA / "operator", f"--cert-dir={certificates}", f"--metrics-service-bind-address={between}",
             "--metrics-bind-address=0", "--health-probe-bind-address=0", "--zap-log-level=debug",
             "--enable-webhook-patching=false", "--enable-apiservice-patching=false"], "Starting workers"))
        self.adapter = self.mesh.add(Program(
            [*environment, KEDA / "adapter", f"--metrics-service-address=localhost:{port}", f"--cert-dir={certificates}",
             f"--tls-cert-file={certificates}/tls.crt", f"--tls-private-key-file={certificates}/tls.key",
             f"--client-ca-file={certificates}/ca.crt", "--bind-address=127.0.0.1", f"--secure-port={shown.rpartition(':')[2]}",
             f"--port={free_address().rpartition(':')[2]}", f"--lister-kubeconfig={KUBECONFIG}",
             f"--authentication-kubeconfig={KUBECONFIG}", f"--authorization-kubeconfig={KUBECONFIG}"], "starting adapter"))
        # The API server asks the adapter, which is no pod.
        authority = yaml.safe_load(kubectl("config", "view", "--raw", "--flatten"))["clusters"][0]["cluster"]
        apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "keda-metrics-apiserver", "namespace": "keda"},
               "spec": {"type": "ExternalName", "externalName": "localhost"}},
              {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
               "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
               "spec": {"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
                        "versionPriority": 100, "caBundle": authority["certificate-authority-data"],
                        "service": {"name": "keda-metrics-apiserver", "namespace": "keda",
                                    "port": int(shown.rpartition(":")[2])}}})
        self.operator.await_ready()

    def install_pool(self):
        """The Deployment and the ScaledObject of the chart, whose trigger leads to the agent here."""
        done = chart.template(*VALUES)
        self.assertEqual(done.returncode, 0, done.stderr)
        manifests = chart.Manifests(done.stdout)
        scaled = manifests.get("ScaledObject", POOL)
        scaled["spec"]["triggers"][0]["metadata"]["scalerAddress"] = self.agent.address
        # Nothing runs the one pod that there would be: it starts for ever, and no agent takes a starting one back.
        manifests.get("Deployment", POOL)["spec"]["replicas"] = 0
        # KEDA reads the secrets that the pool's variables come from, and gives up where one is missing.
        for one in (manifests.get("Secret", "muster-nats"), manifests.get("ServiceAccount", "muster-processor"),
                    manifests.get("Deployment", POOL), scaled):
            one["metadata"]["namespace"] = SPACE
            apply(one)

    def deployment(self):
        return json.loads(kubectl("--namespace", SPACE, "get", "deployment", POOL, "--output", "json"))

    def state(self):
        """What is said where something never came."""
        return (kubectl("--namespace", SPACE, "get", "scaledobject,hpa,deployment", "--output", "yaml") +
                "".join(self.operator.log.lines[-200:]) + "".join(self.adapter.log.lines[-50:]))

    def await_replicas(self, wanted, seconds=PATIENCE_SECONDS):
        """Returns how long it took."""
        begun = time.monotonic()
        while self.deployment()["spec"].get("replicas") != wanted:
            if time.monotonic() - begun > seconds:
                self.fail(f"there are {self.deployment()['spec'].get('replicas')} replicas, not {wanted}\n{self.state()}")
            time.sleep(0.2)
        took = time.monotonic() - begun
        print(f"  KEDA set {wanted} replicas {took:.1f} s after the agent wanted them", file=sys.stderr)
        return took

    def demand(self, replicas):
        self.agent.call("SetOverride", target="default", replicas=replicas, hold={"seconds": 3600})

    def test_keda_carries_out_the_agents_number_from_zero_and_back(self):
        self.wait_until(lambda: kubectl("--namespace", SPACE, "get", "hpa", "--output", "name"), PATIENCE_SECONDS)
        submission = self.start_submit("retail", harness.retail_input(2000))
        self.addCleanup(submission.wait)
        self.addCleanup(submission.kill)
        self.assertLess(self.await_replicas(1), POLL_SECONDS / 2, "it was not pushed")
        self.demand(4)
        self.await_replicas(4)
        self.demand(2)
        self.await_replicas(2)
        self.demand(0)
        self.await_replicas(0)

        self.assertNotIn("error running StreamIsActive", "".join(self.operator.log.lines))

        # KEDA follows an agent that was replaced.
        self.assertEqual(self.agent.program.stop(), 0)
        self.agent.restart()
        self.wait_until(self.agent.leads)
        self.demand(3)
        self.await_replicas(3)


if __name__ == "__main__":
    harness.main()
