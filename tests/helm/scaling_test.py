#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who sets the replicas of a pool, and how the chart hands them over."""

import json
import os
import subprocess
import tempfile

import yaml

import chart
from chart import NAMESPACE, ChartTest
from matrix import EXISTING_TLS, MATRIX, each_rendered, rendered


class ScalingTest(ChartTest):
    AGENT = ("scaler.mode=agent", "pools.default.jobs={retail,helm-test=4}")

    def replicas(self, *values, pool="default"):
        return self.render(*values).get("Deployment", f"muster-processor-{pool}")["spec"].get("replicas")

    def test_a_pool_has_replicas_only_where_nothing_scales_it(self):
        self.assertEqual(self.replicas(), 2)
        for name in ("production", "the agent", "an HPA", "an HPA by CPU", "KEDA",
                     "KEDA by the backlog"):
            self.assertNotIn("replicas", rendered(name).get(
                "Deployment", "muster-processor-default")["spec"], name)
        fixed = rendered("two pools, one of them fixed")
        self.assertEqual(fixed.get("Deployment", "muster-processor-urgent")["spec"]["replicas"], 3)
        self.assertNotIn("replicas", fixed.get("Deployment", "muster-processor-default")["spec"])

    def test_a_pool_without_replicas_of_its_own_has_those_of_all_pools(self):
        for values in ((), ("pools.default.replicas=null",), ("pools.default.threads=1",)):
            self.assertEqual(self.replicas("processor.replicas=3", *values), 3)
        self.assertEqual(self.replicas("processor.replicas=3", "pools.default.replicas=0"), 0)
        self.assertEqual(self.replicas("pools.default.replicas=null"), 2)

    def test_there_is_one_controller_whatever_is_said(self):
        for _, manifests in each_rendered():
            self.assertEqual(
                manifests.get("StatefulSet", "muster-controller")["spec"]["replicas"], 1)
        self.assertIn("'replicas'", self.refusal("controller.replicas=2"))

    def test_the_role_of_the_agent_is_what_its_actuator_calls(self):
        for name, pools in (("the agent", ["default"]), ("production", ["default"]),
                            ("two pools, one of them fixed", ["default"])):
            self.assertEqual(rendered(name).get("Role", "muster-scaling-agent")["rules"], [
                {"apiGroups": ["apps"], "resources": ["deployments/scale"],
                 "resourceNames": [f"muster-processor-{pool}" for pool in pools],
                 "verbs": ["get", "update"]},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "patch"]}])
        for manifests in (rendered("an HPA"), rendered("KEDA"), self.render(*self.AGENT, "scaler.agent.act=false")):
            self.assertEqual(manifests.get("Role", "muster-scaling-agent")["rules"], [
                {"apiGroups": ["apps"], "resources": ["deployments/scale"],
                 "resourceNames": ["muster-processor-default"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}])
        binding = rendered("the agent").get("RoleBinding", "muster-scaling-agent")
        self.assertEqual(binding["subjects"], [
            {"kind": "ServiceAccount", "name": "muster-scaling-agent", "namespace": NAMESPACE}])

    def test_without_the_agent_nobody_may_do_anything(self):
        for name, manifests in each_rendered():
            self.assertEqual(manifests.of("ClusterRole"), {})
            if "muster-scaling-agent" not in manifests.of("StatefulSet"):
                self.assertEqual(manifests.of("Role"), {}, name)

    def rules(self, *values):
        return self.render(*self.AGENT, *values).get(
            "ConfigMap", "muster-scaling-agent")["data"]["rules.yaml"]

    def test_the_rules_have_a_target_for_each_pool_with_the_queues_of_its_jobs(self):
        rules = yaml.safe_load(self.rules("pools.default.scale.sla.aim=30s", "pools.default.scale.max=7"))
        self.assertEqual(rules, {"mode": "act", "targets": {"default": {
            "kind": "deployment", "name": "muster-processor-default",
            "queues": ["retail-in", "helm-test-in"], "sla": {"max": "5m", "aim": "30s"},
            "patience": 0.5, "min": 0, "max": 7}}})

    def test_muster_takes_the_rules(self):
        muster = os.environ.get("MUSTER")
        if not muster:
            self.skipTest("MUSTER names no muster")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(self.rules(
                "scaler.mode=keda",
                "scaler.agent.rules.constraints[0].name=night", "scaler.agent.rules.constraints[0].rank=1",
                "scaler.agent.rules.constraints[0].target=default",
                "scaler.agent.rules.constraints[0].range={0,5}", "scaler.agent.rules.onMetricLoss.after=5"))
            file.flush()
            checked = subprocess.run([muster, "scale", "rules", "check", file.name],
                                     capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_a_pool_that_works_for_all_jobs_cannot_be_sized(self):
        for mode in ("agent", "keda", "hpa"):
            for prometheus in ("", "http://p"):
                said = self.refusal(f"scaler.mode={mode}", "metrics.enabled=true",
                                    f"scaler.keda.prometheus={prometheus}")
                self.assertIn(f"pools.default: scaler.mode {mode} sizes a pool by its queues", said)

    DIRECT = {"scaleUp": {"stabilizationWindowSeconds": 0,
                          "policies": [{"type": "Pods", "value": 20, "periodSeconds": 15}]},
              "scaleDown": {"stabilizationWindowSeconds": 0,
                            "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}}

    def test_keda_and_an_hpa_ask_the_agent_which_leaves_the_replicas_to_them(self):
        for name in ("an HPA", "KEDA", "KEDA with certificates"):
            rules = yaml.safe_load(rendered(name).get(
                "ConfigMap", "muster-scaling-agent")["data"]["rules.yaml"])
            self.assertEqual(rules["targets"]["default"]["actuator"], "external", name)
            self.assertEqual(rules["mode"], "act")
        for name in ("an HPA by CPU", "KEDA by the backlog"):
            self.assertNotIn("muster-scaling-agent", rendered(name).of("StatefulSet"))
        rules = yaml.safe_load(self.rules())
        self.assertNotIn("actuator", rules["targets"]["default"])

    def test_keda_is_pushed_and_takes_the_agents_number_as_it_is(self):
        spec = rendered("KEDA").get("ScaledObject", "muster-processor-default")["spec"]
        self.assertEqual(spec, {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment",
                               "name": "muster-processor-default"},
            "minReplicaCount": 0, "maxReplicaCount": 20, "pollingInterval": 15, "cooldownPeriod": 0,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": self.DIRECT}},
            "triggers": [{"type": "external-push", "metadata": {
                "scalerAddress": "muster-scaling-agent.mesh.svc.cluster.local:7703",
                "target": "default"}}]})
        self.assertEqual(rendered("KEDA").of("TriggerAuthentication"), {})
        own = self.render("scaler.mode=keda", "pools.default.jobs={retail}",
                          "scaler.keda.cooldownPeriod=30",
                          "scaler.keda.behavior.scaleDown.stabilizationWindowSeconds=7").get(
                              "ScaledObject", "muster-processor-default")["spec"]
        self.assertEqual(own["cooldownPeriod"], 30)
        self.assertEqual(own["advanced"]["horizontalPodAutoscalerConfig"]["behavior"],
                         {"scaleDown": {"stabilizationWindowSeconds": 7}})

    def test_the_numbers_of_keda_are_written_in_digits(self):
        """Helm reads those of a file as floats, and prints a million as 1e+06."""
        keda = {"prometheus": "http://prometheus:9090", "pollingInterval": 1000000, "cooldownPeriod": 2000000,
                "itemsPerReplica": 3000000}
        done = chart.template("scaler.mode=keda", "pools.default.jobs={retail}", "metrics.enabled=true",
                              more=("--set-json", f"scaler.keda={json.dumps(keda)}"))
        spec = chart.Manifests(done.stdout).get("ScaledObject", "muster-processor-default")["spec"]
        self.assertEqual((spec["pollingInterval"], spec["cooldownPeriod"]), (1000000, 2000000))
        self.assertEqual(spec["triggers"][0]["metadata"]["threshold"], "3000000")

    def test_with_tls_keda_shows_the_clients_certificate_or_one_of_its_own(self):
        manifests = rendered("KEDA with certificates")
        spec = manifests.get("ScaledObject", "muster-processor-default")["spec"]
        self.assertEqual(spec["triggers"][0]["authenticationRef"], {"name": "muster-keda"})
        self.assertEqual(
            manifests.get("TriggerAuthentication", "muster-keda")["spec"]["secretTargetRef"],
            [{"parameter": parameter, "name": "client", "key": key}
             for parameter, key in (("caCert", "ca.crt"), ("tlsClientCert", "tls.crt"),
                                    ("tlsClientKey", "tls.key"))])
        keda = ("scaler.mode=keda", "pools.default.jobs={retail}", "tests.enabled=false")
        self.assertIn("the certificate that KEDA shows",
                      self.refusal(*EXISTING_TLS[:-1], *keda))
        own = self.render(*EXISTING_TLS[:-1], *keda, "scaler.keda.authentication=of-mine")
        self.assertEqual(own.of("TriggerAuthentication"), {})
        self.assertEqual(own.get("ScaledObject", "muster-processor-default")["spec"]["triggers"][0][
            "authenticationRef"], {"name": "of-mine"})

    def test_keda_may_call_the_agents_and_they_each_other(self):
        for name, namespaces in (("KEDA", ["keda"]), ("an HPA", [])):
            policy = rendered(name).get("NetworkPolicy", "muster-scaling-agent")["spec"]
            callers = policy["ingress"][0]["from"]
            self.assertEqual(
                [caller["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
                 for caller in callers if "namespaceSelector" in caller], namespaces)
            self.assertIn("scaling-agent",
                          callers[0]["podSelector"]["matchExpressions"][0]["values"])
            self.assertIn([{"protocol": "TCP", "port": 7703}],
                          [rule.get("ports") for rule in policy["egress"]])
        roles = yaml.safe_load(self.render(
            "policy.enabled=true", *MATRIX["KEDA with certificates"]["values"]).get(
                "ConfigMap", "muster-policy")["data"]["policy.yaml"])["roles"]
        self.assertIn({"name": "keda", "members": ["cn:muster-client"],
                       "methods": ["externalscaler.ExternalScaler/*"]}, roles)

    def test_keda_reads_a_backlog_that_somebody_serves(self):
        jobs = "pools.default.jobs={retail}"
        self.assertIn("needs metrics.enabled", self.refusal(
            "scaler.mode=keda", jobs, "scaler.keda.prometheus=http://p"))
        spec = rendered("KEDA by the backlog").get("ScaledObject", "muster-processor-default")["spec"]
        self.assertEqual(spec["cooldownPeriod"], 60)
        self.assertNotIn("advanced", spec)
        [trigger] = spec["triggers"]
        self.assertEqual(trigger["metadata"]["query"],
                         'sum(max by (queue) (muster_queue_backlog{queue=~"retail-in",namespace="mesh"}))'
                         ' + sum(max by (queue) (muster_queue_in_flight{queue=~"retail-in",'
                         'namespace="mesh"}))')

    def test_two_releases_in_a_namespace_share_no_number(self):
        monitors = {"ServiceMonitor": ("serviceMonitor", "targetLabels"), "PodMonitor": ("podMonitor", "podTargetLabels")}
        for kind, (switch, copied) in monitors.items():
            values = ("pools.default.jobs={retail}", "metrics.enabled=true", f"metrics.{switch}.enabled=true")
            asked = self.render("scaler.mode=hpa", *values, release="one")
            self.assertEqual(asked.get(kind, "one-muster")["spec"][copied], ["app.kubernetes.io/instance"])
            [metric] = asked.get("HorizontalPodAutoscaler", "one-muster-processor-default")["spec"]["metrics"]
            self.assertEqual(metric["external"]["metric"]["selector"],
                             {"matchLabels": {"pool": "default", "app_kubernetes_io_instance": "one"}})
            measured = self.render("scaler.mode=keda", "scaler.keda.prometheus=http://p:9090", *values, release="one")
            [trigger] = measured.get("ScaledObject", "one-muster-processor-default")["spec"]["triggers"]
            self.assertEqual(trigger["metadata"]["query"].count(
                '{queue=~"retail-in",namespace="mesh",app_kubernetes_io_instance="one"}'), 2)

    def test_keda_asks_for_a_queue_by_the_name_that_metrics_have(self):
        spec = self.render("scaler.mode=keda", "scaler.keda.prometheus=http://p:9090", "scaler.keda.matchers=",
                           "metrics.enabled=true", "pools.default.jobs={retail_python=2,a__b-,retail}").get(
                               "ScaledObject", "muster-processor-default")["spec"]
        self.assertIn('(muster_queue_backlog{queue=~"retail-python-in|a-b-in|retail-in"})',
                      spec["triggers"][0]["metadata"]["query"])
        spec = self.render("scaler.mode=keda", "scaler.keda.prometheus=http://p:9090", "scaler.keda.matchers=",
                           "metrics.enabled=true", "pools.default.scale.queues={in-7,a-in-0,a-in-12}").get(
                               "ScaledObject", "muster-processor-default")["spec"]
        self.assertIn('(muster_queue_backlog{queue=~"in-7|a-in|a-in"})', spec["triggers"][0]["metadata"]["query"])

    def test_an_hpa_keeps_one_replica(self):
        for name in ("an HPA", "an HPA by CPU"):
            spec = rendered(name).get("HorizontalPodAutoscaler", "muster-processor-default")["spec"]
            self.assertEqual((spec["minReplicas"], spec["maxReplicas"]), (1, 20))
            self.assertEqual(spec["scaleTargetRef"]["name"], "muster-processor-default")

    def test_an_hpa_reads_the_agents_number_unless_it_measures_something_itself(self):
        def hpa(*values):
            return self.render("scaler.mode=hpa", "pools.default.jobs={retail}", *values).get(
                "HorizontalPodAutoscaler", "muster-processor-default")["spec"]

        spec = hpa("metrics.enabled=true")
        self.assertEqual(spec["metrics"], [{"type": "External", "external": {
            "metric": {"name": "muster_scale_desired",
                       "selector": {"matchLabels": {"pool": "default"}}},
            "target": {"type": "AverageValue", "averageValue": "1"}}}])
        self.assertEqual(spec["behavior"], self.DIRECT)
        [scraped_otherwise] = hpa("metrics.enabled=true", "scaler.hpa.matchLabels.mesh=north")["metrics"]
        self.assertEqual(scraped_otherwise["external"]["metric"]["selector"],
                         {"matchLabels": {"pool": "default", "mesh": "north"}})
        by_cpu = hpa("scaler.hpa.targetCPUUtilization=70")
        self.assertEqual(by_cpu["metrics"][0]["resource"]["name"], "cpu")
        self.assertNotIn("behavior", by_cpu)
        self.assertEqual(hpa("scaler.hpa.metrics[0].type=Pods")["metrics"], [{"type": "Pods"}])
        self.assertIn("needs metrics.enabled",
                      self.refusal("scaler.mode=hpa", "pools.default.jobs={retail}"))


class HandOverTest(ChartTest):
    """An upgrade leaves the running replicas of a pool alone, or is refused: what the chart makes of the live
    Deployments, which an API server with nothing else shows it."""

    NAME = "muster-processor-default"
    AGENT = ("scaler.mode=agent", "pools.default.jobs={retail}")

    def template(self, *values, annotations=None, replicas=20):
        live = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas},
                "metadata": {"name": self.NAME, "namespace": NAMESPACE, "annotations": {
                    "meta.helm.sh/release-name": chart.RELEASE, "meta.helm.sh/release-namespace": NAMESPACE,
                    **(annotations or {})}, "labels": {"app.kubernetes.io/managed-by": "Helm"}}}
        return chart.template_on({f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{self.NAME}": live}, *values)

    def taken(self, *values, **live):
        done = self.template(*values, **live)
        self.assertEqual(done.returncode, 0, done.stderr)
        return chart.Manifests(done.stdout)

    def refused(self, *values, **live):
        done = self.template(*values, **live)
        self.assertNotEqual(done.returncode, 0, "it was taken")
        return done.stderr

    def test_a_deployment_says_who_sets_its_replicas(self):
        for values, owner in (((), "chart"), (self.AGENT, "scaler"),
                              ((*self.AGENT, "pools.default.scale.enabled=false",
                                "pools.other.jobs={urgent}"), "chart")):
            annotations = self.render(*values).get("Deployment", self.NAME)["metadata"]["annotations"]
            self.assertEqual(annotations, {"muster.io/replicas": owner})

    def test_an_upgrade_that_would_drop_running_replicas_to_one_is_refused(self):
        of_chart = {"muster.io/replicas": "chart"}
        for values in (self.AGENT, ("scaler.mode=keda", "pools.default.jobs={retail}"),
                       ("scaler.mode=hpa", "pools.default.jobs={retail}", "metrics.enabled=true")):
            said = self.refused(*values, annotations=of_chart)
            self.assertIn("pools.default: this upgrade would end 19 of the 20 pods", said)
            self.assertIn(self.NAME, said)
            self.assertIn("scaler.resetReplicas", said)
        for values, live in (((*self.AGENT, "scaler.resetReplicas=true"), {"annotations": of_chart}),
                             (self.AGENT, {"annotations": of_chart, "replicas": 1}),
                             (self.AGENT, {"annotations": of_chart, "replicas": 0}),
                             (self.AGENT, {"annotations": {"muster.io/replicas": "scaler"}}),
                             (self.AGENT, {})):
            self.assertNotIn("replicas", self.taken(*values, **live).get("Deployment", self.NAME)["spec"])
        self.assertEqual(self.taken(annotations=of_chart).get("Deployment", self.NAME)["spec"]["replicas"], 2)

    def test_a_pool_leaves_the_release_to_be_taken_back_with_its_replicas(self):
        step = (*self.AGENT, "scaler.takeOver=true", "pools.fixed.scale.enabled=false",
                "pools.default.pdb.enabled=true")
        kept = {"muster.io/replicas": "chart", "helm.sh/resource-policy": "keep"}
        manifests = self.taken(*step, annotations=kept)
        self.assertEqual(set(manifests.of("Deployment")), {"muster-processor-fixed"})
        self.assertIn(self.NAME, manifests.of("PodDisruptionBudget"))
        # A pool that a scaler has already, and one that nobody has seen yet, stay in the release.
        for live in ({"annotations": {"muster.io/replicas": "scaler"}}, {}):
            self.assertIn(self.NAME, self.taken(*step, **live).of("Deployment"))
        self.assertIn(self.NAME, self.render(*step).of("Deployment"))
        # Helm would delete a Deployment that leaves the release and does not say that it stays.
        said = self.refused(*step, annotations={"muster.io/replicas": "chart"})
        self.assertIn(f"kubectl -n mesh annotate deployment/{self.NAME} helm.sh/resource-policy=keep", said)
        self.assertIn("scaler.takeOver", self.refusal("scaler.takeOver=true"))


if __name__ == "__main__":
    chart.main()
