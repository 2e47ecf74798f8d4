#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What operators set for the pods of the chart."""

import json

import chart
from chart import GRACE_SLACK_SECONDS, ChartTest
from matrix import GATEWAY, rendered


class PodsTest(ChartTest):
    """What the values of a component make of its workload and its pods."""

    WORKLOADS = {"initiator": "muster-initiator", "controller": "muster-controller", "nats": "muster-nats",
                 "processor": "muster-processor-default", "pools.default": "muster-processor-default",
                 "scaler.agent": "muster-scaling-agent", "queueGateway": "muster-queue-gateway"}
    ALL = (*GATEWAY, "scaler.mode=agent", "pools.default.jobs={retail,helm-test}")

    def workload(self, path, *values):
        return {one["metadata"]["name"]: one
                for one in self.render(*self.ALL, *values).workloads()}[self.WORKLOADS[path]]

    def test_a_workload_has_labels_and_annotations_of_the_users(self):
        for path in self.WORKLOADS:
            metadata = self.workload(path, f"{path}.workloadLabels.team=a",
                                     f"{path}.workloadAnnotations.note=b")["metadata"]
            self.assertLessEqual({"team": "a", "app.kubernetes.io/instance": "muster"}.items(),
                                 metadata["labels"].items())
            self.assertEqual(metadata["annotations"]["note"], "b")
            pod = self.workload(path)["spec"]["template"]["metadata"]
            self.assertNotIn("team", pod["labels"])
        self.assertEqual(self.workload("processor", "processor.workloadAnnotations.note=b")["metadata"][
            "annotations"], {"muster.io/replicas": "scaler", "note": "b"})

    # What operators set: the value, and what the pod or its container has of it.
    OF_A_POD = {
        "podLabels": ({"team": "a"}, None), "podAnnotations": ({"note": "b"}, None),
        "nodeSelector": ({"disk": "fast"}, "nodeSelector"),
        "tolerations": ([{"key": "batch", "operator": "Exists"}], "tolerations"),
        "affinity": ({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}, "affinity"),
        "priorityClassName": ("high", "priorityClassName"),
    }

    def test_every_component_has_what_operators_set(self):
        spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        probe = {"initialDelaySeconds": 3, "periodSeconds": 41, "timeoutSeconds": 40, "failureThreshold": 42}
        variable, volume = {"name": "TZ", "value": "UTC"}, {"name": "mine", "emptyDir": {}}
        mount = {"name": "mine", "mountPath": "/mine"}
        resources = {"requests": {"cpu": "3", "memory": "3Gi"}, "limits": {"cpu": "4", "memory": "4Gi"}}
        for path, name in self.WORKLOADS.items():
            given = {
                **{value: each for value, (each, _) in self.OF_A_POD.items()}, "resources": resources,
                "topologySpreadConstraints": [spread], "extraEnv": [variable], "extraVolumes": [volume],
                "extraVolumeMounts": [mount], "readinessProbe": probe, "livenessProbe": probe,
                "pdb": {"enabled": True, "minAvailable": 1},
                "terminationGracePeriodSeconds" if path == "nats" else "drainGraceSeconds": 77}
            if path != "nats":
                given["extraArgs"] = ["--mine=1"]
            if path != "pools.default":  # all pools have one account
                given["serviceAccount"] = {"create": True, "name": "mine", "annotations": {"role": "r"}}
            with self.subTest(path):
                done = chart.template(*self.ALL, more=("--set-json", f"{path}={json.dumps(given)}"))
                self.assertEqual(done.returncode, 0, done.stderr)
                manifests = chart.Manifests(done.stdout)
                [workload] = [one for one in manifests.workloads() if one["metadata"]["name"] == name]
                template = workload["spec"]["template"]
                metadata, pod, container = template["metadata"], template["spec"], template["spec"]["containers"][0]
                selected = workload["spec"]["selector"]["matchLabels"]
                self.assertEqual(metadata["labels"], {**selected, "team": "a"})
                self.assertEqual(metadata["annotations"]["note"], "b")
                for value, (each, of_pod) in self.OF_A_POD.items():
                    if of_pod:
                        self.assertEqual(pod[of_pod], each, value)
                self.assertEqual(pod["topologySpreadConstraints"],
                                 [{**spread, "labelSelector": {"matchLabels": selected}}])
                self.assertEqual(container["resources"], resources)
                for which in ("readinessProbe", "livenessProbe"):
                    self.assertLessEqual(probe.items(), container[which].items(), which)
                self.assertEqual((container["env"][-1], pod["volumes"][-1], container["volumeMounts"][-1]),
                                 (variable, volume, mount))
                self.assertEqual(pod["terminationGracePeriodSeconds"], 77 if path == "nats" else 77 + GRACE_SLACK_SECONDS)
                budget = manifests.get("PodDisruptionBudget", name)["spec"]
                self.assertEqual((budget["minAvailable"], budget["selector"]), (1, {"matchLabels": selected}))
                self.assertNotIn("maxUnavailable", budget)
                if path != "nats":
                    self.assertEqual(container["args"][-1], "--mine=1")
                if path != "pools.default":
                    self.assertEqual(pod["serviceAccountName"], "mine")
                    self.assertEqual(manifests.get("ServiceAccount", "mine")["metadata"]["annotations"], {"role": "r"})

    def test_a_list_or_labels_may_be_null(self):
        for path in self.WORKLOADS.keys() - {"pools.default"}:  # which has no defaults to take out
            names = ["podLabels", "podAnnotations", "workloadLabels", "workloadAnnotations", "extraEnv",
                     "extraVolumes", "extraVolumeMounts", *(["extraArgs"] if path != "nats" else [])]
            self.assertEqual(self.workload(path, *(f"{path}.{name}=null" for name in names)), self.workload(path))

    def test_labels_by_which_the_chart_selects_are_its_own(self):
        for path in self.WORKLOADS:
            where = "pools.default" if path == "processor" else path
            for value, key in (("podLabels", "app.kubernetes.io/component"), ("workloadLabels", "helm.sh/chart"),
                               ("workloadAnnotations", "muster.io/replicas")):
                if value == "workloadAnnotations" and where != "pools.default":
                    continue
                dotted = key.replace(".", "\\.")
                self.assertIn(f"{where}.{value}: {key} is set by the chart",
                              self.refusal(*self.ALL, f"{path}.{value}.{dotted}=x"))

    def test_nats_servers_have_probes_grace_and_volumes_of_the_users(self):
        pod = self.workload(
            "nats", "nats.startupProbe.failureThreshold=900", "nats.livenessProbe.timeoutSeconds=9",
            "nats.readinessProbe.periodSeconds=7", "nats.terminationGracePeriodSeconds=120",
            "nats.extraVolumes[0].name=mine", "nats.extraVolumeMounts[0].name=mine",
            "nats.extraVolumeMounts[0].mountPath=/mine")["spec"]["template"]["spec"]
        [container] = pod["containers"]
        self.assertEqual(container["startupProbe"], {
            "httpGet": {"path": "/healthz?js-enabled-only=true", "port": "monitor"},
            "periodSeconds": 5, "timeoutSeconds": 1, "failureThreshold": 900})
        self.assertEqual(container["livenessProbe"]["timeoutSeconds"], 9)
        self.assertEqual(container["readinessProbe"]["periodSeconds"], 7)
        self.assertEqual(pod["terminationGracePeriodSeconds"], 120)
        self.assertIn({"name": "mine"}, pod["volumes"])
        self.assertIn({"name": "mine", "mountPath": "/mine"}, container["volumeMounts"])
        # A server leaves its clients for 30 s before it ends.
        self.assertIn("/nats/terminationGracePeriodSeconds", self.refusal("nats.terminationGracePeriodSeconds=30"))
        for name in ("conf", "tmp", "volume"):
            self.assertIn(f"nats.extraVolumes: {name} is set by the chart",
                          self.refusal(f"nats.extraVolumes[0].name={name}"))
        self.assertIn("nats.extraVolumeMounts: /data is set by the chart", self.refusal(
            "nats.extraVolumeMounts[0].name=tmp", "nats.extraVolumeMounts[0].mountPath=/data"))

    def test_a_nats_server_is_killed_for_itself_alone_and_is_ready_once_it_has_caught_up(self):
        [container] = self.workload("nats")["spec"]["template"]["spec"]["containers"]
        asked = {name: container[name]["httpGet"]["path"]
                 for name in ("startupProbe", "livenessProbe", "readinessProbe")}
        # js-server-only is ready with replicas that lag (seen with 2.15.2), and in 2.9 waits for the others.
        self.assertEqual(asked, {"startupProbe": "/healthz?js-enabled-only=true",
                                 "livenessProbe": "/healthz?js-enabled-only=true", "readinessProbe": "/healthz"})

    def test_the_pods_of_helm_test_go_where_they_may(self):
        pods = self.render(*self.ALL, "tests.nodeSelector.disk=fast", "tests.tolerations[0].operator=Exists",
                           "tests.affinity.nodeAffinity.a=b", "imagePullSecrets[0].name=pull").of("Pod")
        self.assertEqual(len(pods), 2)
        for pod in pods.values():
            self.assertLessEqual({
                "nodeSelector": {"disk": "fast"}, "tolerations": [{"operator": "Exists"}],
                "affinity": {"nodeAffinity": {"a": "b"}}, "imagePullSecrets": [{"name": "pull"}]}.items(),
                pod["spec"].items())


class DevelopmentTest(ChartTest):
    def test_it_is_small(self):
        manifests = rendered("development")
        self.assertEqual(manifests.of("PodDisruptionBudget"), {})
        for one in manifests.workloads():
            self.assertEqual(one["spec"].get("replicas"), 1, one["metadata"]["name"])
        millicores = mebibytes = 0
        for _, pod in manifests.pods():
            requests = pod["containers"][0]["resources"]["requests"]
            self.assertRegex(requests["cpu"], "^[0-9]+m$")
            self.assertRegex(requests["memory"], "^[0-9]+Mi$")
            millicores += int(requests["cpu"][:-1])
            mebibytes += int(requests["memory"][:-2])
        self.assertLessEqual(millicores, 300)
        self.assertLessEqual(mebibytes, 700)
        for claim in (claim for one in manifests.workloads() for claim in one["spec"].get("volumeClaimTemplates", [])):
            self.assertRegex(claim["spec"]["resources"]["requests"]["storage"], "^[12]Gi$")


if __name__ == "__main__":
    chart.main()
