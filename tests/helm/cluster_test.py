#!/usr/bin/env python3
"""The chart installed on a real API server with RBAC and controllers, which has no nodes: what is made is
checked and admitted, and no container runs.

tests/kubernetes/with_cluster starts one; MUSTER_TEST_KUBECONFIG names it.
"""

import json
import os
import pathlib
import ssl
import time
import unittest
import urllib.error
import urllib.request
import uuid

import yaml

import chart
from chart import CHART, DEVELOPMENT, PRODUCTION, ChartTest

PATIENCE_SECONDS = 30
MATRIX = {
    "defaults": {},
    "production": {"files": [PRODUCTION]},
    "development": {"files": [DEVELOPMENT], "values": ("metrics.enabled=true", "metrics.podMonitor.enabled=true")},
    "HPA": {"values": ("scaler.mode=hpa", "pools.default.jobs={retail}", "metrics.enabled=true")},
    "HPA by CPU": {"values": ("scaler.mode=hpa", "pools.default.jobs={retail}",
                              "scaler.hpa.targetCPUUtilization=70")},
    "KEDA": {"values": ("scaler.mode=keda", "pools.default.jobs={retail}", "tls.enabled=true",
                        "tls.existingSecret=services", "tls.existingNatsSecret=nats-tls",
                        "tls.existingClientSecret=client")},
    "KEDA by the backlog": {"values": (
        "scaler.mode=keda", "pools.default.jobs={retail}", "metrics.enabled=true",
        "scaler.keda.prometheus=http://prometheus:9090")},
    "everything": {"files": [PRODUCTION], "values": (
        "initiator.nodeSelector.disk=fast", "initiator.tolerations[0].operator=Exists",
        "initiator.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
        ".topologyKey=kubernetes.io/hostname", "initiator.podLabels.team=a",
        "initiator.podAnnotations.note=b", "initiator.extraEnv[0].name=TZ",
        "initiator.extraEnv[0].value=UTC", "imagePullSecrets[0].name=pull",
        "pools.urgent.jobs={urgent=4}", "pools.urgent.pdb.minAvailable=1",
        "nats.extraVolumes[0].name=mine", "nats.extraVolumes[0].emptyDir.medium=Memory",
        "nats.extraVolumeMounts[0].name=mine", "nats.extraVolumeMounts[0].mountPath=/mine",
        "initiator.workloadLabels.team=a", "tests.nodeSelector.disk=fast",
        "networkPolicy.apiServer.cidrs={10.0.0.1/32}", "otel.endpoint=http://collector:4317")},
}


class Cluster:
    """The API server of a kubeconfig whose user has a client certificate."""

    def __init__(self, path):
        folder = pathlib.Path(path).parent
        config = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = cluster["server"]
        self.context = ssl.create_default_context(cafile=folder / cluster["certificate-authority"])
        self.context.load_cert_chain(folder / user["client-certificate"], folder / user["client-key"])

    def call(self, path, method="GET", body=None):
        request = urllib.request.Request(
            self.server + path, method=method,
            headers={"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"},
            data=None if body is None else json.dumps(body).encode())
        with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
            return json.load(answer)


class ClusterTest(ChartTest):
    @classmethod
    def setUpClass(cls):
        cls.kubeconfig = os.environ.get("MUSTER_TEST_KUBECONFIG")
        if not cls.kubeconfig:
            raise unittest.SkipTest("MUSTER_TEST_KUBECONFIG names no cluster")
        try:
            cls.cluster = Cluster(cls.kubeconfig)
        except KeyError as missing:
            raise unittest.SkipTest(f"the user of this cluster has no {missing}") from missing
        cls.helm("install", "kinds", chart.ROOT / "tests/helm/custom_resources", "--namespace", "default")

    def setUp(self):
        self.space = f"muster-chart-{uuid.uuid4().hex[:8]}"
        # Admits only pods that the strictest of the Pod Security Standards allows, and says so.
        self.cluster.call("/api/v1/namespaces", "POST", {"metadata": {"name": self.space, "labels": {
            "pod-security.kubernetes.io/enforce": "restricted"}}})
        self.addCleanup(self.cluster.call, f"/api/v1/namespaces/{self.space}", "DELETE")

    @classmethod
    def helm(cls, *arguments):
        return chart.helm(*arguments, "--kubeconfig", cls.kubeconfig)

    def run_helm(self, verb, *values, files=(), more=()):
        done = self.helm(verb, "muster", CHART, "--namespace", self.space,
                         *chart.options_of(values, files), *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def list(self, group, plural):
        return self.cluster.call(f"/{group}/namespaces/{self.space}/{plural}")["items"]

    def await_pods(self, wanted):
        """Waits until the controllers have made this many pods, which admission has then let in."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            names = sorted(pod["metadata"]["name"] for pod in self.list("api/v1", "pods"))
            if len(names) == wanted:
                return names
            time.sleep(0.2)
        events = [event["message"] for event in self.list("api/v1", "events")]
        return self.fail(f"{names} are there, not {wanted}: {events}")

    def test_the_api_server_takes_every_manifest_and_warns_of_none(self):
        for name, given in MATRIX.items():
            with self.subTest(name):
                done = self.run_helm("install", *given.get("values", ()), files=given.get("files", ()),
                                     more=("--dry-run=server",))
                self.assertNotIn("W", [line[:1] for line in done.stderr.splitlines()], done.stderr)
                manifests = chart.template(*given.get("values", ()), files=given.get("files", ()))
                # helm's dry run checks the schemas; a strict one on the server finds unknown fields, too.
                for one in chart.Manifests(manifests.stdout).all:
                    self.create_strictly(one)

    PLURALS = {"NetworkPolicy": "networkpolicies"}

    def create_strictly(self, manifest):
        group = manifest["apiVersion"]
        plural = self.PLURALS.get(manifest["kind"], manifest["kind"].lower() + "s")
        for subject in manifest.get("subjects", []):
            subject["namespace"] = self.space
        manifest["metadata"].pop("namespace", None)
        path = (f"/{'apis/' if '/' in group else 'api/'}{group}/namespaces/{self.space}/{plural}"
                "?dryRun=All&fieldValidation=Strict")
        try:
            self.cluster.call(path, "POST", manifest)
        except urllib.error.HTTPError as refused:
            said = json.load(refused)["message"]
            self.fail(f"{manifest['kind']} {manifest['metadata']['name']}: {said}")

    def test_restricted_admission_lets_every_pod_in(self):
        self.run_helm("install", files=[PRODUCTION])
        # 3 NATS servers, 2 initiators, a controller, 2 agents; a new Deployment has one replica.
        self.assertEqual(self.await_pods(9)[0], "muster-controller-0")
        pod = self.render().get("Pod", "muster-test")
        self.create_strictly(pod)

    def test_an_upgrade_keeps_the_password_and_the_replicas_of_whoever_scales(self):
        values = ("scaler.mode=agent", "pools.default.jobs={retail}")
        self.run_helm("install", *values)
        secret = self.list("api/v1", "secrets")
        before = {one["metadata"]["name"]: one.get("data") for one in secret}["muster-nats"]
        scale = f"/apis/apps/v1/namespaces/{self.space}/deployments/muster-processor-default/scale"
        self.cluster.call(scale, "PATCH", {"spec": {"replicas": 5}})
        self.run_helm("upgrade", *values, "pools.default.threads=4")
        self.assertEqual(self.cluster.call(scale)["spec"]["replicas"], 5)
        after = {one["metadata"]["name"]: one.get("data") for one in self.list("api/v1", "secrets")}
        self.assertEqual(after["muster-nats"], before)
        done = self.helm("rollback", "muster", "1", "--namespace", self.space)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.cluster.call(scale)["spec"]["replicas"], 5)
        [container] = self.cluster.call(scale.removesuffix("/scale"))["spec"]["template"]["spec"]["containers"]
        self.assertIn("--threads=2", container["args"])

    # Helm takes the number out, and the API server then sets its default.
    def test_a_pool_that_is_scaled_from_now_on_begins_with_one_replica_only_where_that_is_asked_for(self):
        scaled = ("scaler.mode=agent", "pools.default.jobs={retail}")
        self.run_helm("install", "processor.replicas=4")
        refused = self.helm("upgrade", "muster", CHART, "--namespace", self.space, *chart.options_of(scaled))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("would end 3 of the 4 pods", refused.stderr)
        scale = f"/apis/apps/v1/namespaces/{self.space}/deployments/muster-processor-default/scale"
        self.assertEqual(self.cluster.call(scale)["spec"]["replicas"], 4)
        self.run_helm("upgrade", *scaled, "scaler.resetReplicas=true")
        self.assertEqual(self.cluster.call(scale)["spec"]["replicas"], 1)
        self.run_helm("upgrade", *scaled)

    # The steps of docs/operations/kubernetes.md.
    def test_a_scaler_takes_a_pool_over_with_the_replicas_that_it_has(self):
        scaled = ("scaler.mode=agent", "pools.default.jobs={retail}")
        self.run_helm("install", "processor.replicas=4")
        before = self.await_pods(7)  # a NATS server, an initiator and a controller, too
        deployment = f"/apis/apps/v1/namespaces/{self.space}/deployments/muster-processor-default"

        def annotate(annotations):
            self.cluster.call(deployment, "PATCH", {"metadata": {"annotations": annotations}})

        annotate({"helm.sh/resource-policy": "keep"})
        self.run_helm("upgrade", *scaled, "scaler.takeOver=true")
        annotate({"helm.sh/resource-policy": None, "muster.io/replicas": "scaler"})
        self.run_helm("upgrade", *scaled)
        self.assertEqual(self.cluster.call(deployment)["spec"]["replicas"], 4)
        self.assertLessEqual(set(before), set(self.await_pods(8)))  # and an agent

    def may(self, account, verb, resource, name="", group=""):
        plain, _, subresource = resource.partition("/")
        review = self.cluster.call("/apis/authorization.k8s.io/v1/subjectaccessreviews", "POST", {
            "spec": {"user": f"system:serviceaccount:{self.space}:{account}", "resourceAttributes": {
                "namespace": self.space, "verb": verb, "group": group, "resource": plain,
                "subresource": subresource, "name": name}}})
        return review["status"]["allowed"]

    def test_the_agent_may_do_what_it_needs_and_nothing_else(self):
        self.run_helm("install", files=[PRODUCTION])
        agent, pool = "muster-scaling-agent", "muster-processor-default"
        needed = [("get", "deployments/scale", pool, "apps"), ("update", "deployments/scale", pool, "apps"),
                  ("list", "pods"), ("watch", "pods"), ("patch", "pods", "some-pod")]
        end = time.monotonic() + PATIENCE_SECONDS  # a role takes effect a moment after its binding
        while not all(self.may(agent, *each) for each in needed) and time.monotonic() < end:
            time.sleep(0.2)
        for each in needed:
            self.assertTrue(self.may(agent, *each), each)
        for each in (("update", "deployments/scale", "another", "apps"), ("patch", "deployments", pool, "apps"),
                     ("update", "deployments", pool, "apps"), ("delete", "pods", "some-pod"),
                     ("create", "pods"), ("create", "pods/exec", "some-pod"), ("get", "secrets", "muster-nats"),
                     ("list", "secrets"), ("get", "leases", "any", "coordination.k8s.io")):
            self.assertFalse(self.may(agent, *each), each)
        for account in ("muster-initiator", "muster-controller", "muster-processor", "muster-nats"):
            for each in needed:
                self.assertFalse(self.may(account, *each), (account, each))


if __name__ == "__main__":
    chart.main()
