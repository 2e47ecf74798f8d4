#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart installed on a real API server with RBAC and controllers, which has no nodes: what is made is
checked and admitted, and no container runs. With Helm 4 also releases that go from one Helm to the other.

tests/kubernetes/with_cluster starts one; MUSTER_TEST_KUBECONFIG names it.
"""

import copy
import json
import os
import pathlib
import ssl
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
import uuid

import yaml

import chart
from chart import CHART, DEVELOPMENT, PRODUCTION, ChartTest

PATIENCE_SECONDS = 180  # on a machine that has much to do
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
        self.headers = {}
        self.authority = folder / cluster["certificate-authority"]
        self.context = ssl.create_default_context(cafile=self.authority)
        self.context.load_cert_chain(folder / user["client-certificate"], folder / user["client-key"])

    def call(self, path, method="GET", body=None):
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return self.send(path, method, kind, None if body is None else json.dumps(body).encode())

    def apply(self, path, text, **options):
        """What `kubectl apply --server-side` sends: a manifest as it is written, and in whose name."""
        options = urllib.parse.urlencode({"fieldValidation": "Strict", **options})
        return self.send(f"{path}?{options}", "PATCH", "application/apply-patch+yaml", text.encode())

    def send(self, path, method, kind, body):
        request = urllib.request.Request(self.server + path, method=method, data=body,
                                         headers={"Content-Type": kind, **self.headers})
        with urllib.request.urlopen(request, context=self.context, timeout=30) as answer:
            return json.loads(answer.readline())  # an object is a line; of a watch, this is the first event

    def as_account(self, space, account):
        """The same cluster for whoever has a token of the account, as a pod of it has."""
        path = f"/api/v1/namespaces/{space}/serviceaccounts/{account}/token"
        other = copy.copy(self)
        other.headers = {"Authorization": "Bearer " + self.call(path, "POST", {"spec": {}})["status"]["token"]}
        other.context = ssl.create_default_context(cafile=self.authority)
        return other


class ClusterCase(ChartTest):
    """A namespace of the cluster for each test, and what Helm and a scaler do there."""

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
    def helm(cls, *arguments, program=None):
        return chart.helm(*arguments, "--kubeconfig", cls.kubeconfig, program=program)

    def run_helm(self, verb, *values, files=(), more=(), program=None):
        done = self.helm(verb, "muster", CHART, "--namespace", self.space,
                         *chart.options_of(values, files), *more, program=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def roll_back(self, revision, program=None):
        done = self.helm("rollback", "muster", revision, "--namespace", self.space, program=program)
        self.assertEqual(done.returncode, 0, done.stderr)

    @property
    def pool(self):
        return f"/apis/apps/v1/namespaces/{self.space}/deployments/muster-processor-default"

    def scale_pool(self, replicas):
        """As a scaler does."""
        self.cluster.call(f"{self.pool}/scale", "PATCH", {"spec": {"replicas": replicas}})

    def replicas(self):
        return self.cluster.call(self.pool)["spec"]["replicas"]

    def arguments(self):
        [container] = self.cluster.call(self.pool)["spec"]["template"]["spec"]["containers"]
        return container["args"]

    def password(self):
        return {one["metadata"]["name"]: one.get("data") for one in self.list("api/v1", "secrets")}["muster-nats"]

    def list(self, group, plural):
        return self.cluster.call(f"/{group}/namespaces/{self.space}/{plural}")["items"]

    def await_event(self, sentence):
        """Waits until an event of the namespace says it."""
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            said = {event["message"] for event in self.list("api/v1", "events")}
            if any(sentence in message for message in said):
                return
            time.sleep(0.2)
        self.fail(f"no event says {sentence!r}: {said}")

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

    def take_over(self, scaled, more=(), program=None):
        """Has whoever scales from now on begin with the 4 replicas that there are."""
        def annotate(annotations):
            self.cluster.call(self.pool, "PATCH", {"metadata": {"annotations": annotations}})

        annotate({"helm.sh/resource-policy": "keep"})
        self.run_helm("upgrade", *scaled, "scaler.takeOver=true", more=more, program=program)
        annotate({"helm.sh/resource-policy": None, "muster.io/replicas": "scaler"})
        self.run_helm("upgrade", *scaled, more=more, program=program)
        self.assertEqual(self.replicas(), 4)


class ClusterTest(ClusterCase):
    # `helm upgrade --dry-run=server` of Helm 4 lets unknown fields, repeated keys and conflicts pass.
    def test_the_api_server_takes_every_manifest_and_warns_of_none(self):
        for name, given in MATRIX.items():
            with self.subTest(name):
                done = self.run_helm("install", *given.get("values", ()), files=given.get("files", ()),
                                     more=("--dry-run=server",))
                self.assertNotIn("W", [line[:1] for line in done.stderr.splitlines()], done.stderr)
                for text in self.texts(*given.get("values", ()), files=given.get("files", ())):
                    self.assertEqual(self.refusal_of(text), "")

    def test_the_api_server_refuses_what_helm_lets_pass(self):
        [text] = [text for text in self.texts() if "kind: Deployment" in text]
        self.assertEqual(self.refusal_of(text), "")
        self.assertIn("field not declared in schema", self.refusal_of(text.replace("  replicas:", "  replica: 1\n  replicas:")))
        self.assertIn("duplicate entries for key", self.refusal_of(text.replace(
            "        env:\n", "        env:\n        - {name: POD_NAME, value: mine}\n")))
        self.assertIn("already set in map", self.refusal_of(text.replace("  replicas:", "  replicas: 1\n  replicas:")))
        # Another one has said how many replicas there are.
        self.cluster.apply(self.path_of(yaml.safe_load(text)), text, fieldManager="helm")
        self.cluster.apply(self.path_of(yaml.safe_load(text)) + "/scale", json.dumps({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "muster-processor-default"},
            "spec": {"replicas": 5}}), fieldManager="scaler", force="true")
        self.assertIn('conflict with "scaler"', self.refusal_of(text))

    def texts(self, *values, files=()):
        """The manifests of the chart as it writes them, for this test's namespace."""
        done = chart.helm("template", "muster", CHART, "--namespace", self.space, "--kube-version", "1.36",
                          *chart.options_of(values, files))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [text for text in done.stdout.split("\n---\n") if yaml.safe_load(text)]

    PLURALS = {"NetworkPolicy": "networkpolicies"}

    def path_of(self, manifest):
        group = manifest["apiVersion"]
        plural = self.PLURALS.get(manifest["kind"], manifest["kind"].lower() + "s")
        return (f"/{'apis/' if '/' in group else 'api/'}{group}/namespaces/{self.space}/{plural}/"
                f"{manifest['metadata']['name']}")

    def refusal_of(self, text):
        """What the API server has against a manifest, without making it: `kubectl apply --server-side
        --dry-run=server --field-manager=helm`. Empty: nothing."""
        manifest = yaml.safe_load(text)
        try:
            self.cluster.apply(self.path_of(manifest), text, fieldManager="helm", dryRun="All")
        except urllib.error.HTTPError as refused:
            return f"{manifest['kind']} {manifest['metadata']['name']}: {json.load(refused)['message']}"
        return ""

    def test_restricted_admission_lets_every_pod_in(self):
        self.run_helm("install", files=[PRODUCTION])
        # 3 NATS servers, 2 initiators, a controller, 2 agents; a new Deployment has one replica.
        self.assertEqual(self.await_pods(9)[0], "muster-controller-0")
        for text in self.texts():
            if yaml.safe_load(text)["kind"] == "Pod":
                self.assertEqual(self.refusal_of(text), "")

    def test_events_say_what_keeps_pods_away_as_the_page_has_it(self):
        page = (chart.ROOT / "docs/operations/troubleshooting.md").read_text(encoding="utf-8")
        self.run_helm("install", "initiator.persistence.storageClass=fast", "pools.default.extraContainers[0].name=handler",
                      "pools.default.extraContainers[0].image=h", "pools.default.extraContainers[0].securityContext.runAsUser=0",
                      r"quota.hard.requests\.memory=300Mi")
        for sentence, of_page in (
                ("no persistent volumes available for this claim and no storage class is set", None),
                ('storageclass.storage.k8s.io "fast" not found', "storageclass … not found"),
                ("violates PodSecurity", "forbidden: violates PodSecurity"), ("exceeded quota: muster", "exceeded quota")):
            self.await_event(sentence)
            self.assertIn(f"`{of_page or sentence}`", page)

    def test_an_upgrade_keeps_the_password_and_the_replicas_of_whoever_scales(self):
        values = ("scaler.mode=agent", "pools.default.jobs={retail}")
        self.run_helm("install", *values)
        before = self.password()
        self.scale_pool(5)
        self.run_helm("upgrade", *values, "pools.default.threads=4")
        self.assertEqual((self.replicas(), self.password()), (5, before))
        self.assertIn("--threads=4", self.arguments())
        self.roll_back(1)
        self.assertEqual((self.replicas(), self.password()), (5, before))
        self.assertIn("--threads=2", self.arguments())

    def test_a_number_of_the_charts_that_another_has_changed(self):
        self.run_helm("install", "processor.replicas=4")
        self.scale_pool(5)
        upgrade = ("upgrade", "muster", CHART, "--namespace", self.space, *chart.options_of(("processor.replicas=4",)))
        done = self.helm(*upgrade)
        if not chart.IS_HELM4:  # it asks nobody
            self.assertEqual((done.returncode, self.replicas()), (0, 4))
            return
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r'conflict with "[^"]+" with subresource "scale"')
        self.assertEqual(self.replicas(), 5)
        self.assertEqual(self.helm(*upgrade, "--force-conflicts").returncode, 0)
        self.assertEqual(self.replicas(), 4)

    # Helm takes the number out, and the API server then sets its default.
    def test_a_pool_that_is_scaled_from_now_on_begins_with_one_replica_only_where_that_is_asked_for(self):
        scaled = ("scaler.mode=agent", "pools.default.jobs={retail}")
        self.run_helm("install", "processor.replicas=4")
        refused = self.helm("upgrade", "muster", CHART, "--namespace", self.space, *chart.options_of(scaled))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("would end 3 of the 4 pods", refused.stderr)
        self.assertEqual(self.replicas(), 4)
        self.run_helm("upgrade", *scaled, "scaler.resetReplicas=true")
        self.assertEqual(self.replicas(), 1)
        self.run_helm("upgrade", *scaled)

    # The steps of docs/operations/kubernetes.md.
    def test_a_scaler_takes_a_pool_over_with_the_replicas_that_it_has(self):
        scaled = ("scaler.mode=agent", "pools.default.jobs={retail}")
        # The same pods but for who scales them: what changes them replaces them as ever.
        self.run_helm("install", "processor.replicas=4", "pools.default.jobs={retail}")
        before = self.await_pods(7)  # a NATS server, an initiator and a controller, too
        self.take_over(scaled, ("--server-side=false",) if chart.IS_HELM4 else ())
        self.assertLessEqual(set(before), set(self.await_pods(8)))  # and an agent

    def may(self, account, verb, resource, name="", group=""):
        plain, _, subresource = resource.partition("/")
        review = self.cluster.call("/apis/authorization.k8s.io/v1/subjectaccessreviews", "POST", {
            "spec": {"user": f"system:serviceaccount:{self.space}:{account}", "resourceAttributes": {
                "namespace": self.space, "verb": verb, "group": group, "resource": plain,
                "subresource": subresource, "name": name}}})
        return review["status"]["allowed"]

    def answer_of(self, cluster, method, path, body=None):
        """The status of a call, and 200 for all that went well."""
        try:
            cluster.call(path, method, body)
            return 200
        except urllib.error.HTTPError as refused:
            refused.close()
            return refused.code

    def install_scaled(self):
        """Installs a pool that the agent scales. Returns the cluster as the agent's token sees it."""
        self.run_helm("install", files=[PRODUCTION])
        self.await_pods(9)
        agent = self.cluster.as_account(self.space, "muster-scaling-agent")
        pods = f"/api/v1/namespaces/{self.space}/pods"
        end = time.monotonic() + PATIENCE_SECONDS  # a role takes effect a moment after its binding
        while self.answer_of(agent, "GET", pods) == 403 and time.monotonic() < end:
            time.sleep(0.2)
        return agent

    def test_the_agents_token_does_what_the_agent_needs(self):
        agent = self.install_scaled()
        core, apps = f"/api/v1/namespaces/{self.space}", f"/apis/apps/v1/namespaces/{self.space}"
        listed = agent.call(f"{core}/pods")
        pod = listed["items"][0]["metadata"]["name"]
        cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}}
        self.assertEqual(agent.call(f"{core}/pods/{pod}", "PATCH", cost)["metadata"]["name"], pod)
        version = listed["metadata"]["resourceVersion"]
        watched = agent.call(f"{core}/pods?watch=true&timeoutSeconds=10&resourceVersion={version}")
        self.assertEqual(watched["type"], "MODIFIED")
        scale = agent.call(f"{apps}/deployments/muster-processor-default/scale")
        scale["spec"]["replicas"] = 2
        self.assertEqual(agent.call(f"{apps}/deployments/muster-processor-default/scale", "PUT", scale)["spec"]["replicas"], 2)

    def test_the_agents_token_is_refused_everything_else(self):
        agent = self.install_scaled()
        core, apps = f"/api/v1/namespaces/{self.space}", f"/apis/apps/v1/namespaces/{self.space}"
        pool, pod = f"{apps}/deployments/muster-processor-default", f"{core}/pods/muster-controller-0"
        forbidden = [
            # what it may, of other workloads and in other ways
            ("GET", f"{apps}/statefulsets/muster-nats/scale"), ("PUT", f"{apps}/statefulsets/muster-nats/scale"),
            ("GET", f"{apps}/deployments/another/scale"), ("PUT", f"{apps}/deployments/another/scale"),
            ("PATCH", f"{pool}/scale"), ("GET", "/api/v1/pods"), ("GET", "/api/v1/namespaces/default/pods"),
            # the workloads themselves, which would run anything
            ("GET", pool), ("PUT", pool), ("PATCH", pool), ("DELETE", pool), ("GET", f"{apps}/deployments"),
            ("POST", f"{apps}/deployments"), ("DELETE", f"{apps}/deployments"), ("POST", f"/apis/batch/v1/namespaces/{self.space}/jobs"),
            # pods
            ("POST", f"{core}/pods"), ("PUT", pod), ("DELETE", pod), ("DELETE", f"{core}/pods"),
            ("POST", f"{pod}/exec?command=sh"), ("POST", f"{pod}/attach"), ("POST", f"{pod}/portforward"), ("GET", f"{pod}/log"),
            ("POST", f"{pod}/eviction"), ("PATCH", f"{pod}/ephemeralcontainers"), ("PATCH", f"{pod}/resize"),
            ("PATCH", f"{pod}/status"), ("POST", f"{core}/bindings"),
            # secrets, and all by which it could get more rights
            ("GET", f"{core}/secrets"), ("GET", f"{core}/secrets/muster-nats"), ("GET", f"{core}/configmaps/muster-scaling-agent"),
            ("PATCH", f"{core}/configmaps/muster-scaling-agent"),
            ("POST", f"{core}/serviceaccounts/muster-initiator/token"), ("POST", f"{core}/serviceaccounts"),
            *((verb, f"/apis/rbac.authorization.k8s.io/v1/namespaces/{self.space}/{kind}{name}")
              for kind in ("roles", "rolebindings")
              for verb, name in (("GET", ""), ("POST", ""), ("PATCH", "/muster-scaling-agent"))),
            ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
            # the cluster
            ("GET", "/api/v1/nodes"), ("GET", "/api/v1/namespaces"), ("POST", "/api/v1/namespaces"), ("DELETE", core),
            ("POST", f"/apis/coordination.k8s.io/v1/namespaces/{self.space}/leases"), ("GET", f"{core}/events"),
        ]
        for method, path in forbidden:
            with self.subTest(f"{method} {path}"):
                self.assertEqual(self.answer_of(agent, method, path, {} if method != "GET" else None), 403)

    def test_the_other_accounts_may_nothing_of_the_agents(self):
        self.install_scaled()
        pool = "muster-processor-default"
        for account in ("muster-initiator", "muster-controller", "muster-processor", "muster-nats"):
            for each in (("get", "deployments/scale", pool, "apps"), ("update", "deployments/scale", pool, "apps"),
                         ("list", "pods"), ("watch", "pods"), ("patch", "pods", "some-pod")):
                self.assertFalse(self.may(account, *each), (account, each))


@unittest.skipUnless(chart.IS_HELM4 and chart.HELM3, "there are no two Helms")
class BothHelmsTest(ClusterCase):
    """A release that was made by one Helm, and goes on with the other."""

    SCALED = ("scaler.mode=agent", "pools.default.jobs={retail}")

    def upgrade(self, program, threads, more=()):
        """Another revision, which leaves the scaler's 5 replicas and the password alone."""
        self.run_helm("upgrade", *self.SCALED, f"pools.default.threads={threads}", program=program, more=more)
        self.assert_kept(threads)

    def assert_kept(self, threads):
        self.assertEqual((self.replicas(), self.password()), (5, self.before))
        self.assertIn(f"--threads={threads}", self.arguments())

    def install(self, program):
        self.run_helm("install", *self.SCALED, "pools.default.threads=2", program=program)
        self.before = self.password()
        self.scale_pool(5)

    def test_from_3_to_4_and_back(self):
        self.install(chart.HELM3)
        self.upgrade(chart.HELM4, 3)
        self.upgrade(chart.HELM4, 4, more=("--server-side=true",))
        self.roll_back(2, chart.HELM4)
        self.assert_kept(3)
        self.upgrade(chart.HELM3, 5)
        self.roll_back(1, chart.HELM3)
        self.assert_kept(2)
        self.upgrade(chart.HELM4, 6)

    def test_from_4_to_3_and_back(self):
        self.install(chart.HELM4)
        self.upgrade(chart.HELM3, 3)
        self.upgrade(chart.HELM4, 4)
        self.roll_back(1, chart.HELM3)
        self.assert_kept(2)
        self.upgrade(chart.HELM4, 5, more=("--server-side=true",))
        self.roll_back(2, chart.HELM4)
        self.assert_kept(3)

    def test_a_pool_of_3_is_taken_over_by_4_with_its_replicas_and_one_of_4_by_3(self):
        for made, taken, more in ((chart.HELM3, chart.HELM4, ("--server-side=false",)), (chart.HELM4, chart.HELM3, ())):
            with self.subTest(taken):
                self.run_helm("install", "processor.replicas=4", "pools.default.jobs={retail}", program=made)
                self.take_over(self.SCALED, more, program=taken)
                self.assertEqual(self.helm("uninstall", "muster", "--namespace", self.space, "--wait").returncode, 0)


if __name__ == "__main__":
    chart.main()
