#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Certificates, policies and what else makes production safe."""

import os
import pathlib
import re
import shlex
import subprocess
import tempfile

import yaml

import chart
from chart import OF_OPERATORS, ChartTest
from matrix import rendered


def amount(text):
    """A number such as 110, 50m or 64Mi."""
    units = {"m": 0.001, "Mi": 1 << 20, "Gi": 1 << 30}
    unit = text.lstrip("0123456789")
    return float(text.removesuffix(unit)) * units.get(unit, 1)


class TlsTest(ChartTest):
    def test_readiness_asks_a_port_for_health_alone_with_tls_or_without(self):
        for values in ("defaults", "production"):
            for kind, name, port in (("StatefulSet", "muster-initiator", 7780),
                                     ("StatefulSet", "muster-controller", 7782),
                                     ("Deployment", "muster-processor-default", 7781)):
                container = rendered(values).container(kind, name)
                self.assertEqual(container["readinessProbe"]["grpc"], {"port": port})
                self.assertIn(f"--health=0.0.0.0:{port}", container["args"])

    def test_certificates_have_the_names_that_services_advertise(self):
        certificates = rendered("production").of("Certificate")
        self.assertEqual(set(certificates), {"muster-services", "muster-nats", "muster-client"})
        names = certificates["muster-services"]["spec"]["dnsNames"]
        for name in ("localhost", "muster.mesh.svc.cluster.local", "*.mesh.pod.cluster.local",
                     "*.muster-initiator.mesh.svc.cluster.local",
                     "*.muster-controller.mesh.svc.cluster.local",
                     "*.muster-scaling-agent.mesh.svc.cluster.local",
                     "muster-scaling-agent.mesh.svc.cluster.local"):
            self.assertIn(name, names)
        self.assertIn("*.muster-nats.mesh.svc.cluster.local",
                      certificates["muster-nats"]["spec"]["dnsNames"])

    def called(self, manifests):
        """Under which names each secret's owner is called."""
        arguments = [argument for one in manifests.workloads()
                     for argument in one["spec"]["template"]["spec"]["containers"][0].get("args", ())]
        [test] = manifests.get("Pod", "muster-test")["spec"]["containers"]
        called = {"localhost", "10-0-0-7.mesh.pod.cluster.local", test["env"][0]["value"].partition(":")[0],
                  *(re.sub(r"\$\(\w+\)", "pod", argument[len("--advertise="):].partition(":")[0])
                    for argument in arguments if argument.startswith("--advertise="))}
        servers = manifests.get("Secret", "muster-nats")["stringData"]["url"].split(",")
        return {"services": called, "client": set(),
                "nats": {each.rpartition("@")[2].partition(":")[0] for each in servers}}

    def test_the_page_makes_certificates_and_installs_production_with_them(self):
        page = (chart.ROOT / "docs/operations/kubernetes.md").read_text(encoding="utf-8")
        [recipe] = re.findall(r"^```\n(umask 077\nopenssl .*?)^```$", page, re.MULTILINE | re.DOTALL)
        [install] = re.findall(r"^```\n(helm install [^`]*tls.existingSecret=[^`]*)^```$", page, re.MULTILINE)
        words = shlex.split(install.replace("\\\n", ""))
        self.assertEqual((words[:4], words[-1]), (["helm", "install", "muster", "helm/muster"], "--wait"))
        done = subprocess.run([chart.HELM, "template", *words[2:-1]], cwd=chart.ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        manifests = chart.Manifests(done.stdout)
        self.assertEqual({one["apiVersion"] for one in manifests.all} & set(OF_OPERATORS), set())

        folder = tempfile.TemporaryDirectory(prefix="muster-recipe-")
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "kubectl"
        program.write_text('#!/bin/sh\nfor given; do case $given in --from-file=*)\n'
                           'test -s "${given##*=}" || exit 1;; esac; done\n')
        program.chmod(0o755)
        done = subprocess.run(["bash", "-ec", recipe], cwd=folder.name, capture_output=True, text=True,
                              env={"PATH": f"{folder.name}:{os.environ['PATH']}"})
        self.assertEqual(done.returncode, 0, done.stderr)
        certificates = rendered("production").of("Certificate")
        for name, hosts in self.called(manifests).items():
            said = subprocess.run(["openssl", "x509", "-in", f"{name}.crt", "-noout", "-subject", "-ext", "subjectAltName"],
                                  cwd=folder.name, check=True, capture_output=True, text=True).stdout
            self.assertEqual(re.search(r"CN ?= ?(\S+)", said)[1], certificates[f"muster-{name}"]["spec"]["commonName"])
            names = re.findall(r"DNS:([^,\s]+)", said)
            for host in hosts:
                self.assertTrue({host, re.sub(r"^[^.]+", "*", host)} & set(names), f"{host} is not in {names}")
            subprocess.run(["openssl", "verify", "-CAfile", "ca.crt", f"{name}.crt"], cwd=folder.name, check=True,
                           capture_output=True)

    def test_the_policy_gives_services_what_the_page_does(self):
        page = (chart.ROOT / "docs/policy.md").read_text(encoding="utf-8")
        [text] = re.findall(r"^```yaml\n(roles:\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
        policy = yaml.safe_load(rendered("production").get(
            "ConfigMap", "muster-policy")["data"]["policy.yaml"])
        roles = {role["name"]: role for role in policy["roles"]}
        wanted = {role["name"]: role for role in yaml.safe_load(text)["roles"]}
        self.assertEqual(roles["services"]["methods"], wanted["services"]["methods"])
        self.assertEqual(roles["services"]["members"], ["cn:muster-services"])
        self.assertEqual(roles["submitters"], wanted["submitters"])

    def test_the_policy_lets_the_initiator_ask_the_agent_all_that_it_asks(self):
        asked = set()
        for source in (chart.ROOT / "services/initiator").rglob("*.cc"):
            text = source.read_text(encoding="utf-8")
            if "v1::ScalingService::Stub" in text and not source.name.endswith("_test.cc"):
                asked.update(re.findall(r"&(?:v1::ScalingService::)?Stub::(\w+)", text))
        policy = yaml.safe_load(rendered("production").get(
            "ConfigMap", "muster-policy")["data"]["policy.yaml"])
        [services] = [role for role in policy["roles"] if role["name"] == "services"]
        self.assertIn("Simulate", asked)
        for method in asked:
            self.assertIn(f"muster.v1.ScalingService/{method}", services["methods"])

    def test_a_disruption_budget_may_be_zero(self):
        def spec(*values):
            return self.render("initiator.pdb.enabled=true", *values).get(
                "PodDisruptionBudget", "muster-initiator")["spec"]

        self.assertEqual(spec("initiator.pdb.maxUnavailable=0")["maxUnavailable"], 0)
        self.assertEqual(spec()["maxUnavailable"], 1)
        self.assertEqual(spec("initiator.pdb.maxUnavailable=null")["maxUnavailable"], 1)
        self.assertEqual(spec("initiator.pdb.minAvailable=0")["minAvailable"], 0)

    def test_a_class_of_volumes_is_text(self):
        for given, wanted in (("-", ""), ("fast", "fast"), ("yes", "yes")):
            self.assertEqual(self.claim(f"nats.persistence.storageClass={given}")["storageClassName"], wanted)
        self.assertNotIn("storageClassName", self.claim())

    def claim(self, *values):
        [claim] = self.render(*values).get("StatefulSet", "muster-nats")["spec"]["volumeClaimTemplates"]
        return claim["spec"]

    def test_the_quota_of_production_holds_its_largest_mesh_and_the_pods_that_end_in_an_upgrade(self):
        manifests = rendered("production")
        hard = manifests.get("ResourceQuota", "muster")["spec"]["hard"]
        taken = dict.fromkeys(("pods", "requests.cpu", "requests.memory", "persistentvolumeclaims", "requests.storage"), 0)
        for name, pod in manifests.pods():
            workload = {one["metadata"]["name"]: one["spec"] for one in manifests.workloads()}.get(name, {})
            times = 2 * 50 if "processor" in name else workload.get("replicas", 1)
            requests = pod["containers"][0]["resources"]["requests"]
            claims = workload.get("volumeClaimTemplates", [])
            taken["pods"] += times
            taken["requests.cpu"] += times * amount(requests["cpu"])
            taken["requests.memory"] += times * amount(requests["memory"])
            taken["persistentvolumeclaims"] += times * len(claims)
            taken["requests.storage"] += sum(times * amount(claim["spec"]["resources"]["requests"]["storage"]) for claim in claims)
        self.assertEqual(set(taken), set(hard))
        for name, most in taken.items():
            self.assertLessEqual(most, amount(hard[name]), name)
            self.assertGreater(most * 1.25, amount(hard[name]), name)

    def test_production_is_safe(self):
        manifests = rendered("production")
        self.assertIn("muster-deny", manifests.of("NetworkPolicy"))
        self.assertEqual(set(manifests.of("PodDisruptionBudget")),
                         {one["metadata"]["name"] for one in manifests.workloads()})
        for name, pod in manifests.pods():
            self.assertIn("limits", pod["containers"][0]["resources"], name)
            if pod["containers"][0]["name"] not in ("nats", "burst"):
                self.assertIn("--policy=/etc/muster/policy/policy.yaml", pod["containers"][0]["args"])


if __name__ == "__main__":
    chart.main()
