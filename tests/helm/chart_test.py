#!/usr/bin/env python3
"""The manifests of the chart, as `helm template` renders them for many values.

The programs that MUSTER_INITIATOR_PROGRAM, MUSTER_CONTROLLER_PROGRAM, MUSTER_PROCESSOR_PROGRAM and
MUSTER_SCALING_AGENT_PROGRAM name tell which options there are.
"""

import base64
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

import chart
from chart import CHART, DEVELOPMENT, NAMESPACE, PRODUCTION, ChartTest

EXISTING_TLS = ("tls.enabled=true", "tls.existingSecret=services", "tls.existingNatsSecret=nats-tls",
                "tls.existingClientSecret=client")
# Each names what a cluster might be given.
MATRIX = {
    "defaults": {},
    "production": {"files": [PRODUCTION]},
    "development": {"files": [DEVELOPMENT]},
    "an existing NATS": {"values": ("nats.enabled=false", "nats.url=nats://n:4222")},
    "an existing NATS with a password": {"values": (
        "nats.enabled=false", "nats.existingSecret=n", "nats.credentialsKey=creds", "nats.caKey=ca")},
    "existing certificates": {"values": EXISTING_TLS},
    "the agent": {"values": ("scaler.mode=agent", "pools.default.jobs={retail,helm-test=4}")},
    "an HPA": {"values": ("scaler.mode=hpa", "pools.default.jobs={retail}", "metrics.enabled=true")},
    "an HPA by CPU": {"values": ("scaler.mode=hpa", "pools.default.jobs={retail}",
                                 "scaler.hpa.targetCPUUtilization=70")},
    "KEDA": {"values": ("scaler.mode=keda", "pools.default.jobs={retail}")},
    "KEDA with certificates": {"values": (*EXISTING_TLS, "scaler.mode=keda", "tests.enabled=false",
                                          "pools.default.jobs={retail}")},
    "KEDA by the backlog": {"values": (
        "scaler.mode=keda", "pools.default.jobs={retail}", "metrics.enabled=true",
        "scaler.keda.prometheus=http://prometheus:9090")},
    "two pools, one of them fixed": {"values": (
        "scaler.mode=agent", "pools.default.jobs={retail}", "pools.urgent.scale.enabled=false",
        "pools.urgent.replicas=3", "pools.urgent.jobs={urgent}")},
    "no volumes": {"values": ("nats.persistence.enabled=false", "initiator.persistence.enabled=false",
                              "controller.persistence.enabled=false")},
    "no network policies and no test": {"values": ("networkPolicy.enabled=false",
                                                   "tests.enabled=false")},
    "a PodMonitor": {"values": ("metrics.enabled=true", "metrics.podMonitor.enabled=true")},
    "more of NATS, workloads and the test": {"values": (
        *EXISTING_TLS, "nats.extraVolumes[0].name=mine", "nats.extraVolumes[0].emptyDir.medium=Memory",
        "nats.extraVolumeMounts[0].name=mine", "nats.extraVolumeMounts[0].mountPath=/mine",
        "nats.extraEnv[0].name=TZ", "nats.extraEnv[0].value=UTC", "nats.workloadLabels.team=a",
        "nats.terminationGracePeriodSeconds=120", "processor.workloadAnnotations.note=b",
        "tests.nodeSelector.disk=fast", "tests.tolerations[0].operator=Exists")},
    "everything of a component": {"values": (
        "initiator.nodeSelector.disk=fast", "initiator.tolerations[0].operator=Exists",
        "initiator.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
        ".topologyKey=kubernetes.io/hostname",
        "initiator.topologySpreadConstraints[0].maxSkew=1",
        "initiator.topologySpreadConstraints[0].topologyKey=zone",
        "initiator.topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway",
        "initiator.priorityClassName=high", "initiator.podLabels.team=a",
        "initiator.podAnnotations.note=b", "initiator.extraEnv[0].name=TZ",
        "initiator.extraEnv[0].value=UTC", "initiator.extraArgs={--trace-sample=1}",
        "initiator.pdb.enabled=true", "imagePullSecrets[0].name=pull",
        "initiator.maxQueueItems=500000", "initiator.maxQueueBytes=64MiB",
        "initiator.maxStoppedUploads=500", "initiator.maxStoppedUploadBytes=8GiB",
        "otel.endpoint=http://collector:4317", "pools.default.handlerPrograms={/srv/handlers}",
        "controller.ownershipLease=30s", "processor.standby=black-friday")},
}
MATRIX["a quota"] = {"values": ("quota.hard.pods=50", r"quota.hard.requests\.memory=64Gi")}
GATEWAY = ("queueGateway.enabled=true", "queueGateway.accounts.existingSecret=shops")
MATRIX["a queue gateway"] = {"values": GATEWAY}
MATRIX["a queue gateway with all that it may have"] = {"values": (
    *GATEWAY, *EXISTING_TLS, "policy.enabled=true", "metrics.enabled=true",
    "queueGateway.https.existingSecret=clients", "queueGateway.admin.enabled=true",
    "queueGateway.queueRequests=500", "queueGateway.accountRequests=1000000",
    "queueGateway.pdb.enabled=true", "queueGateway.service.type=LoadBalancer",
    "queueGateway.extraEnv[0].name=TZ", "queueGateway.extraEnv[0].value=UTC",
    "networkPolicy.queueClients[0].ipBlock.cidr=10.0.0.0/8")}
GRACE_SLACK_SECONDS = 15
OF_OPERATORS = ("cert-manager.io/v1", "monitoring.coreos.com/v1", "keda.sh/v1alpha1")


def amount(text):
    """A number such as 110, 50m or 64Mi."""
    units = {"m": 0.001, "Mi": 1 << 20, "Gi": 1 << 30}
    unit = text.lstrip("0123456789")
    return float(text.removesuffix(unit)) * units.get(unit, 1)


@functools.lru_cache(maxsize=None)
def rendered(name):
    done = chart.template(*MATRIX[name].get("values", ()), files=MATRIX[name].get("files", ()))
    if done.returncode != 0:
        raise AssertionError(f"{name}: {done.stderr}")
    return chart.Manifests(done.stdout)


def each_rendered():
    for name in MATRIX:
        yield name, rendered(name)


class MatrixTest(ChartTest):
    """What holds for every set of values in MATRIX."""

    def each(self):
        for name, manifests in each_rendered():
            with self.subTest(name):
                yield manifests

    def test_the_page_names_each_kind_that_a_cluster_may_lack(self):
        page = (chart.ROOT / "docs/operations/troubleshooting.md").read_text(encoding="utf-8")
        [row] = [line for line in page.splitlines() if "no matches for kind" in line]
        kinds = {one["kind"] for manifests in self.each() for one in manifests.all if one["apiVersion"] in OF_OPERATORS}
        self.assertEqual(set(re.findall(r'"(\w+)"`', row)), kinds)

    def test_no_two_manifests_have_one_name_and_each_has_the_labels_of_the_release(self):
        for manifests in self.each():
            names = [(one["kind"], one["metadata"]["name"]) for one in manifests.all]
            self.assertEqual(len(names), len(set(names)))
            for one in manifests.all:
                self.assertEqual(one["metadata"]["labels"]["app.kubernetes.io/instance"], "muster")
                self.assertLessEqual(len(one["metadata"]["name"]), 63)

    def test_a_selector_finds_the_pods_of_its_workload_and_of_no_other(self):
        for manifests in self.each():
            labels = {one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"]
                      for one in manifests.workloads()}
            for one in manifests.workloads():
                wanted = one["spec"]["selector"]["matchLabels"].items()
                found = [name for name, those in labels.items() if wanted <= those.items()]
                self.assertEqual(found, [one["metadata"]["name"]])

    def test_services_and_disruption_budgets_select_pods_that_are_there(self):
        for manifests in self.each():
            labels = [one["spec"]["template"]["metadata"]["labels"].items()
                      for one in manifests.workloads()]
            selectors = [one["spec"]["selector"] for one in manifests.of("Service").values()]
            selectors += [one["spec"]["selector"]["matchLabels"]
                          for one in manifests.of("PodDisruptionBudget").values()]
            for selector in selectors:
                self.assertTrue(any(selector.items() <= those for those in labels), selector)

    # Kubernetes merges lists of ports by their numbers: of two protocols of one number, an upgrade may take the wrong one.
    def test_a_port_has_one_number_one_name_and_one_protocol(self):
        for manifests in self.each():
            ports = [*((name, "containerPort", container.get("ports", ())) for name, pod in manifests.pods()
                       for container in pod["containers"]),
                     *((name, "port", one["spec"]["ports"]) for name, one in manifests.of("Service").items())]
            for name, number, listed in ports:
                for key in (number, "name"):
                    self.assertEqual(len({each[key] for each in listed}), len(listed), name)
                self.assertEqual([each for each in listed if each.get("protocol", "TCP") != "TCP"], [], name)

    def test_a_stateful_set_names_a_headless_service(self):
        for manifests in self.each():
            for one in manifests.of("StatefulSet").values():
                service = manifests.get("Service", one["spec"]["serviceName"])
                self.assertEqual(service["spec"]["clusterIP"], "None")
                self.assertTrue(service["spec"]["publishNotReadyAddresses"])

    def test_a_pod_of_a_stateful_set_that_cannot_start_is_replaced_by_a_rollback(self):
        # One that is OrderedReady waits for it, and so does the rollback, until somebody deletes the pod.
        for manifests in self.each():
            for one in manifests.of("StatefulSet").values():
                self.assertEqual(one["spec"].get("podManagementPolicy"), "Parallel", one["metadata"]["name"])

    def test_every_container_is_hardened(self):
        for manifests in self.each():
            for name, pod in manifests.pods():
                self.assertLessEqual(
                    {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
                     "seccompProfile": {"type": "RuntimeDefault"}}.items(),
                    pod["securityContext"].items(), name)
                self.assertNotIn("initContainers", pod)
                for container in pod["containers"]:
                    self.assertEqual(
                        container["securityContext"],
                        {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                         "privileged": False, "readOnlyRootFilesystem": True}, name)
                    self.assertIn("requests", container["resources"])
                self.assertFalse(pod["enableServiceLinks"], name)

    def test_a_container_of_the_users_is_hardened_unless_it_says_otherwise(self):
        added = ("processor.extraContainers[0].name=handler", "processor.extraContainers[0].image=h")

        def handler(*values):
            pod = self.render(*added, *values).get("Deployment", "muster-processor-default")["spec"]["template"]["spec"]
            own, more = pod["containers"]
            return own["securityContext"], more

        own, more = handler()
        self.assertEqual(more, {"name": "handler", "image": "h", "securityContext": own})
        _, more = handler("processor.extraContainers[0].securityContext.runAsUser=5")
        self.assertEqual(more["securityContext"], {"runAsUser": 5})

    def test_only_the_scaling_agent_gets_a_token(self):
        for manifests in self.each():
            for name, pod in manifests.pods():
                self.assertIs(pod["automountServiceAccountToken"], name.endswith("-scaling-agent"))
            for account in manifests.of("ServiceAccount").values():
                self.assertFalse(account["automountServiceAccountToken"])

    def test_each_component_has_an_account_of_its_own(self):
        for manifests in self.each():
            accounts = {}
            for one in manifests.workloads():
                component = one["metadata"]["labels"]["app.kubernetes.io/component"]
                accounts[component] = one["spec"]["template"]["spec"]["serviceAccountName"]
            self.assertEqual(len(set(accounts.values())), len(accounts))
            self.assertEqual(set(accounts.values()), set(manifests.of("ServiceAccount")))

    def test_a_pod_may_take_longer_than_the_grace_of_its_service(self):
        for manifests in self.each():
            for name, pod in manifests.pods():
                for container in pod["containers"]:
                    for argument in container.get("args", []):
                        if argument.startswith("--drain-grace="):
                            grace = int(argument.partition("=")[2].rstrip("s"))
                            self.assertEqual(pod["terminationGracePeriodSeconds"],
                                             grace + GRACE_SLACK_SECONDS, name)

    def test_a_mount_has_a_volume_and_what_is_written_is_a_volume(self):
        for manifests in self.each():
            for one in manifests.workloads():
                pod = one["spec"]["template"]["spec"]
                volumes = {volume["name"] for volume in pod["volumes"]}
                volumes |= {claim["metadata"]["name"]
                            for claim in one["spec"].get("volumeClaimTemplates", [])}
                for container in pod["containers"]:
                    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
                    self.assertEqual(len(mounts), len(container["volumeMounts"]))
                    self.assertLessEqual({mount["name"] for mount in mounts.values()}, volumes)
                    self.assertIn("/tmp", mounts)

    def test_config_maps_and_accounts_that_pods_name_are_rendered(self):
        for manifests in self.each():
            for _, pod in manifests.pods():
                for volume in pod["volumes"]:
                    if "configMap" in volume:
                        self.assertIn(volume["configMap"]["name"], manifests.of("ConfigMap"))

    def test_liveness_never_asks_whether_nats_is_there(self):
        for manifests in self.each():
            for one in manifests.workloads():
                container = one["spec"]["template"]["spec"]["containers"][0]
                if container["name"] == "nats":
                    continue
                if container["name"] == "queue-gateway":
                    self.assertEqual(container["livenessProbe"]["httpGet"],
                                     {"path": "/healthz", "port": "health"})
                else:
                    self.assertEqual(container["livenessProbe"]["tcpSocket"], {"port": "grpc"})
                self.assertNotIn("startupProbe", container)

    def test_no_argument_and_no_plain_variable_holds_a_secret(self):
        for manifests in self.each():
            secrets = {text for one in manifests.of("Secret").values()
                       for text in one["stringData"].values()}
            for one in manifests.all:
                if one["kind"] == "Secret":
                    continue
                text = json.dumps(one)
                for secret in secrets:
                    self.assertNotIn(secret, text)
                self.assertNotRegex(text, r"(nats|tls)://[^/\"@]*@")

    def test_every_policy_ends_where_the_ports_of_the_components_do(self):
        ports = {"initiator": 7700, "processor": 7701, "controller": 7702, "scaling-agent": 7703,
                 "queue-gateway": 10001}
        for manifests in self.each():
            policies = manifests.of("NetworkPolicy")
            for component, port in ports.items():
                policy = policies.get(f"muster-{component}")
                if policy is not None:
                    self.assertEqual(policy["spec"]["ingress"][0]["ports"],
                                     [{"protocol": "TCP", "port": port}])


class OptionsTest(ChartTest):
    """What the services are told is what they know."""

    PROGRAMS = {component: os.environ.get(f"MUSTER_{variable}_PROGRAM")
                for component, variable in (("initiator", "INITIATOR"), ("controller", "CONTROLLER"),
                                            ("processor", "PROCESSOR"),
                                            ("scaling-agent", "SCALING_AGENT"),
                                            ("queue-gateway", "QUEUE_GATEWAY"))}

    @functools.lru_cache(maxsize=None)
    def known_to(self, component):
        program = self.PROGRAMS[component]
        if not program:
            self.skipTest(f"no variable names muster-{component}")
        shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"--[a-z][a-z-]+", shown))

    def test_every_option_and_every_variable_is_in_the_help(self):
        for name, manifests in each_rendered():
            for one in manifests.workloads():
                component = one["metadata"]["labels"]["app.kubernetes.io/component"]
                if component == "nats":
                    continue
                container = one["spec"]["template"]["spec"]["containers"][0]
                told = {argument.partition("=")[0] for argument in container["args"]}
                told |= {"--" + env["name"][len("MUSTER_"):].lower().replace("_", "-")
                         for env in container["env"] if env["name"].startswith("MUSTER_")}
                known = self.known_to(component)
                with self.subTest(name, component=component):
                    self.assertLessEqual(told, known)

    def test_an_option_is_given_once_but_for_lists(self):
        lists = {"--job", "--handler-programs", "--handler-env"}
        for name, manifests in each_rendered():
            for _, pod in manifests.pods():
                told = [argument.partition("=")[0] for argument in pod["containers"][0].get("args", [])]
                repeated = {option for option in told if told.count(option) > 1} - lists
                self.assertEqual(repeated, set(), name)

    def test_a_pool_parks_for_a_release_and_the_lease_of_the_report_is_set(self):
        manifests = self.render("controller.ownershipLease=30s", "pools.sale.standby=black-friday")
        arguments = {name: manifests.container(kind, f"muster-{name}")["args"] for kind, name in (
            ("StatefulSet", "controller"), ("Deployment", "processor-sale"),
            ("Deployment", "processor-default"))}
        self.assertIn("--ownership-lease=30s", arguments["controller"])
        self.assertIn("--standby=black-friday", arguments["processor-sale"])
        self.assertNotIn("--standby", " ".join(arguments["processor-default"]))
        self.assertIn("standby", self.refusal("pools.sale.standby=black friday"))
        self.assertIn("ownershipLease", self.refusal("controller.ownershipLease=soon"))

    def test_an_initiator_is_told_what_it_holds_of_uploads_that_were_cut_off(self):
        manifests = self.render("initiator.maxStoppedUploads=2500", "initiator.maxStoppedUploadBytes=8GiB")
        arguments = manifests.container("StatefulSet", "muster-initiator")["args"]
        self.assertIn("--max-stopped-uploads=2500", arguments)
        self.assertIn("--max-stopped-upload-bytes=8GiB", arguments)
        self.assertNotIn("--max-stopped", " ".join(
            self.render().container("StatefulSet", "muster-initiator")["args"]))
        self.assertIn("maxStoppedUploads", self.refusal("initiator.maxStoppedUploads=0"))
        self.assertIn("maxStoppedUploadBytes", self.refusal("initiator.maxStoppedUploadBytes=much"))

    def test_initiators_advertise_a_name_that_stays(self):
        [advertised] = [argument for argument in
                        self.render().container("StatefulSet", "muster-initiator")["args"]
                        if argument.startswith("--advertise=")]
        self.assertEqual(advertised, "--advertise=$(POD_NAME).muster-initiator.mesh.svc."
                                     "cluster.local:7700")

    def assert_advertises(self, values, advertised):
        """The processor rendered with these values advertises for each address of its pod what is said."""
        container = self.render(*values).container("Deployment", "muster-processor-default")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "muster-processor"
            program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
            program.chmod(0o755)
            for address, name in advertised.items():
                said = subprocess.run(
                    [*container["command"], *container["args"]], capture_output=True, text=True,
                    check=True, env={"PATH": f"{folder}:{os.environ['PATH']}", "POD_IP": address})
                self.assertEqual(said.stdout.splitlines(), [f"--advertise={name}:7701", *container["args"]])

    def test_with_tls_a_processor_advertises_a_name_of_its_address(self):
        self.assert_advertises(EXISTING_TLS, {"10.0.12.7": "10-0-12-7.mesh.pod.cluster.local",
                                              "fd00::7:1": "fd00--7-1.mesh.pod.cluster.local"})

    def test_without_tls_it_advertises_its_address_as_a_port_may_follow(self):
        self.assert_advertises(("listenAddress=[::]",), {"10.0.12.7": "10.0.12.7", "fd00::7:1": "[fd00::7:1]"})

    def test_plaintext_is_allowed_only_without_tls(self):
        for name, manifests in each_rendered():
            for _, pod in manifests.pods():
                container = pod["containers"][0]
                if container["name"] in ("nats", "burst", "ready"):
                    continue
                has_tls = "MUSTER_TLS_CERT" in {env["name"] for env in container["env"]}
                self.assertNotEqual("--allow-plaintext" in container["args"], has_tls, name)
                self.assertNotIn("--allow-any-client", container["args"])


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


def template_on(objects, *values):
    """As an API server with these objects, by their paths, has it."""
    with chart.ApiServer(objects) as server:
        return chart.template(*values, more=(
            "--dry-run=server", "--disable-openapi-validation", "--kube-apiserver", server.url, "--kubeconfig",
            os.devnull))


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
        return template_on({f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{self.NAME}": live}, *values)

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


class NatsTest(ChartTest):
    def configuration(self, *values, files=()):
        manifests = self.render(*values, files=files)
        return manifests, manifests.get("ConfigMap", "muster-nats")["data"]["nats.conf"]

    def test_services_get_the_url_with_its_password_from_the_secret(self):
        manifests = rendered("defaults")
        secret = manifests.get("Secret", "muster-nats")["stringData"]
        self.assertEqual(secret["url"], f"nats://muster:{secret['password']}@"
                                        "muster-nats-0.muster-nats.mesh.svc.cluster.local:4222")
        self.assertRegex(secret["password"], "^m[A-Za-z0-9]{31}$")
        container = manifests.container("StatefulSet", "muster-controller")
        self.assertIn({"name": "MUSTER_NATS", "valueFrom": {"secretKeyRef": {
            "name": "muster-nats", "key": "url"}}}, container["env"])

    # The servers got an empty password, and let in whoever named the user.
    def test_a_secret_without_its_password_is_refused_by_name(self):
        def on(data):
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "muster-nats", "namespace": NAMESPACE,
                      "annotations": {"meta.helm.sh/release-name": chart.RELEASE,
                                      "meta.helm.sh/release-namespace": NAMESPACE},
                      "labels": {"app.kubernetes.io/managed-by": "Helm"}}, **data}
            return template_on({f"/api/v1/namespaces/{NAMESPACE}/secrets/muster-nats": secret})

        kept = on({"data": {"password": base64.b64encode(b"mine").decode()}})
        self.assertEqual(kept.returncode, 0, kept.stderr)
        secret = chart.Manifests(kept.stdout).get("Secret", "muster-nats")["stringData"]
        self.assertEqual(secret["password"], "mine")
        for data in ({}, {"data": {"url": "bmF0czo="}}, {"data": {"password": ""}}):
            refused = on(data)
            self.assertNotEqual(refused.returncode, 0, "it was taken")
            self.assertIn("secret muster-nats in namespace mesh has no key password", refused.stderr)

    def test_no_service_listens_for_prometheus_unless_the_values_say_so(self):
        nowhere = {"name": "MUSTER_METRICS", "value": ""}
        for component in ("initiator", "controller"):
            container = rendered("defaults").container("StatefulSet", f"muster-{component}")
            self.assertIn(nowhere, container["env"])
            container = self.render("metrics.enabled=true").container("StatefulSet", f"muster-{component}")
            self.assertNotIn(nowhere, container["env"])
            self.assertIn("--allow-plaintext-metrics", container["args"])

    def test_what_three_servers_store_has_three_copies_and_tls(self):
        manifests = rendered("production")
        url = manifests.get("Secret", "muster-nats")["stringData"]["url"]
        self.assertEqual(url.count("tls://muster:"), 3)
        self.assertEqual(manifests.get("StatefulSet", "muster-nats")["spec"]["replicas"], 3)
        arguments = manifests.container("StatefulSet", "muster-initiator")["args"]
        self.assertIn("--replicas=3", arguments)
        self.assertIn("--ack-survives=power", arguments)

    def test_the_server_accepts_its_configuration(self):
        servers = os.environ.get("MUSTER_NATS_SERVERS", "nats-server").split(":")
        server = shutil.which(servers[-1], path=os.environ["PATH"] + ":/usr/sbin")
        if server is None:
            self.skipTest("there is no nats-server")
        for values in ((), ("nats.replicas=3",), ("nats.memoryStore=160MB", "nats.fileStore=1GB")):
            _, text = self.configuration(*values)
            with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
                file.write(text)
                file.flush()
                done = subprocess.run([server, "-t", "-c", file.name], capture_output=True, text=True,
                                      env={"POD_NAME": "muster-nats-0", "MUSTER_NATS_PASSWORD": "m1e5"})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_servers_start_again_whenever_their_file_is_another(self):
        def checksum(manifests):
            pod = manifests.get("StatefulSet", "muster-nats")["spec"]["template"]
            return pod["metadata"]["annotations"]["checksum/config"]

        self.assertEqual(checksum(self.render()), checksum(self.render("nats.resources.limits.memory=2Gi")))
        self.assertNotEqual(checksum(self.render()), checksum(self.render("mesh.bucket=other")))
        with tempfile.TemporaryDirectory() as folder:  # a later chart, whose file lets services publish more
            copy = pathlib.Path(folder) / "muster"
            shutil.copytree(CHART, copy)
            for template in copy.glob("templates/*nats*"):
                text = template.read_text(encoding="utf-8")
                template.write_text(text.replace('"_INBOX.>"]', '"_INBOX.>", "more.>"]'), encoding="utf-8")
            done = chart.helm("template", "muster", copy, "--namespace", NAMESPACE)
        self.assertEqual(done.returncode, 0, done.stderr)
        later = chart.Manifests(done.stdout)
        self.assertIn('"more.>"', later.get("ConfigMap", "muster-nats")["data"]["nats.conf"])
        self.assertNotEqual(checksum(self.render()), checksum(later))

    def test_an_existing_server_is_the_only_one(self):
        manifests = rendered("an existing NATS")
        self.assertNotIn("muster-nats", manifests.of("StatefulSet"))
        self.assertEqual(manifests.of("Secret"), {})
        self.assertIn({"name": "MUSTER_NATS", "value": "nats://n:4222"},
                      manifests.container("StatefulSet", "muster-initiator")["env"])

    def test_values_that_contradict_each_other_are_refused(self):
        for values, said in (
                (("nats.enabled=false",), "nats.url or nats.existingSecret"),
                (("nats.url=nats://n:4222",), "set nats.enabled to false"),
                (("nats.enabled=false", "nats.url=nats://me:secret@n:4222"), "nats.existingSecret, key url"),
                (("nats.enabled=false", "nats.url=tls://n:4222", "nats.caKey=ca.crt"),
                 "nats.caKey is ca.crt, which is a key of nats.existingSecret"),
                (("nats.credentialsKey=creds",), "nats.credentialsKey is creds, which is a key of nats.existingSecret"),
                (("tls.enabled=true",), "tls.existingSecret"),
                (("policy.enabled=true",), "policy.enabled needs tls.enabled"),
                (("tls.enabled=true", "tls.certManager.enabled=true"), "issuerRef.name"),
                (("metrics.serviceMonitor.enabled=true",), "need metrics.enabled")):
            self.assertIn(said, self.refusal(*values))


class ImpossibleTest(ChartTest):
    """Values that cannot hold together are refused."""

    AGENT = ("scaler.mode=agent", "pools.default.jobs={retail}")

    def test_replicas_of_a_pool_that_a_scaler_sizes(self):
        for mode in (self.AGENT, ("scaler.mode=keda", "pools.default.jobs={retail}"),
                     ("scaler.mode=hpa", "pools.default.jobs={retail}", "metrics.enabled=true")):
            self.assertIn("pools.default.replicas", self.refusal(*mode, "pools.default.replicas=3"))
            self.assertIn("processor.replicas", self.refusal(*mode, "processor.replicas=3"))
        # Where some pool is not scaled, it has the replicas of all pools.
        manifests = self.render(*self.AGENT, "processor.replicas=3", "pools.fixed.scale.enabled=false")
        self.assertEqual(manifests.get("Deployment", "muster-processor-fixed")["spec"]["replicas"], 3)
        self.assertEqual(self.render("pools.default.replicas=0").get(
            "Deployment", "muster-processor-default")["spec"]["replicas"], 0)

    def test_an_agent_that_does_not_act_beside_what_acts_on_its_number(self):
        for mode in ("keda", "hpa"):
            values = (f"scaler.mode={mode}", "pools.default.jobs={retail}", "metrics.enabled=true", "scaler.agent.act=false")
            self.assertIn(f"with scaler.mode {mode} the agent's number is carried out", self.refusal(*values))
            # There is no agent.
            self.render(*values, "scaler.keda.prometheus=http://p:9090", "scaler.hpa.targetCPUUtilization=70")
        self.render(*self.AGENT, "scaler.agent.act=false")

    def test_an_hpa_by_the_cpu_of_a_pod_that_requests_none(self):
        by_cpu = ("scaler.mode=hpa", "scaler.hpa.targetCPUUtilization=70")
        none, handler = "processor.resources.requests.cpu=null", "pools.default.extraContainers[0].name=handler"
        self.assertIn("pools.default: scaler.hpa.targetCPUUtilization is a percentage of the CPU that containers request, and "
                      "container processor requests none", self.refusal(*by_cpu, none))
        self.assertIn("container handler requests none", self.refusal(*by_cpu, handler))
        self.render(*by_cpu, none, "processor.resources.limits.cpu=1", handler,
                    "pools.default.extraContainers[0].resources.requests.cpu=100m")
        # Nothing looks at the CPU of these.
        self.render(*by_cpu, none, "pools.default.scale.enabled=false")
        self.render(*by_cpu, none, "scaler.hpa.metrics[0].type=Pods")
        self.render("scaler.mode=hpa", "metrics.enabled=true", "pools.default.jobs={retail}", none)

    def test_a_quota_that_the_pods_of_the_values_exceed(self):
        self.assertIn("quota.hard.pods is 4: the replicas and scale.max of the values make 5 pods",
                      self.refusal("quota.hard.pods=4"))
        self.assertIn("make 24 pods", self.refusal(*self.AGENT, "quota.hard.pods=23"))
        self.assertIn("make 27 pods", self.refusal(*self.AGENT, *GATEWAY, "pools.fixed.scale.enabled=false",
                                                   "pools.fixed.replicas=1", "quota.hard.pods=26"))
        self.assertIn("quota.hard.pods is 120", self.refusal("pools.default.scale.max=200", files=[PRODUCTION]))
        self.render("quota.hard.pods=5")
        self.render(*self.AGENT, "quota.hard.pods=24")
        self.render("quota.hard.requests\\.memory=64Gi")

    def test_two_ways_of_a_pool_to_a_scaler(self):
        self.assertIn("scaler.takeOver and scaler.resetReplicas",
                      self.refusal(*self.AGENT, "scaler.takeOver=true", "scaler.resetReplicas=true"))

    def test_roles_beside_a_policy_of_the_users(self):
        self.assertIn("policy.roles and policy.existingConfigMap: the roles are those of ConfigMap mine",
                      self.refusal("policy.existingConfigMap=mine", files=[PRODUCTION]))
        self.render("policy.existingConfigMap=mine", "policy.roles=null", files=[PRODUCTION])

    def test_more_replicas_at_least_than_at_most(self):
        for mode in (self.AGENT, ("scaler.mode=keda", "pools.default.jobs={retail}")):
            self.assertIn("pools.default.scale: min is 9, max is 3", self.refusal(
                *mode, "pools.default.scale.min=9", "processor.scale.max=3"))
        self.render(*self.AGENT, "pools.default.scale.min=3", "pools.default.scale.max=3")

    def test_pools_that_would_grow_for_the_same_queue_which_no_agent_begins_with(self):
        default = "pools.default.jobs={retail}"
        for more in ("pools.more.jobs={retail=4}", "pools.more.scale.queues={retail-in-3}"):
            for mode in ("agent", "keda", "hpa"):
                said = self.refusal(f"scaler.mode={mode}", "metrics.enabled=true", default, more)
                self.assertIn("pools.default and pools.more: both would grow for queue retail-in", said)
            # What no agent sizes may share queues.
            for mode in (("scaler.mode=none",), ("scaler.mode=agent", "pools.more.scale.enabled=false"),
                         ("scaler.mode=hpa", "scaler.hpa.targetCPUUtilization=70")):
                self.render(*mode, default, more)
        self.assertIn("pools.default and pools.more", self.refusal(
            "scaler.mode=agent", "pools.default.scale.queues={retail-in-0}", "pools.more.jobs={retail}"))
        self.render("scaler.mode=agent", "pools.default.scale.queues={in-0}", "pools.more.scale.queues={in-1}")
        self.assertIn("pools.default.scale.queues: in is there twice",
                      self.refusal("scaler.mode=agent", "pools.default.scale.queues={in,in}"))
        self.assertIn("pools.default: it has 65 queues", self.refusal(
            "scaler.mode=agent", f"pools.default.scale.queues={{{','.join(f'q{i}' for i in range(65))}}}"))
        self.assertIn("pools.default.jobs: retail is there twice", self.refusal("pools.default.jobs={retail,retail=4}"))

    def test_times_that_no_service_begins_with(self):
        made = ("tls.enabled=true", "tls.certManager.enabled=true", "tls.certManager.issuerRef.name=ca")
        for values, said in (
                (("mesh.lease=0.5s",), "mesh.lease is 0.5s: at least 1s"),
                (("mesh.lease=12h1ms",), "mesh.lease is 12h1ms: at most 12h"),
                (("controller.ownershipLease=500ms",), "controller.ownershipLease is 500ms: at least 1s"),
                (("controller.ownershipLease=1d",), "controller.ownershipLease is 1d: at most 10m"),
                ((*self.AGENT, "processor.scale.sla.max=0s"), "pools.default.scale.sla.max is 0s: at least 1ms"),
                ((*self.AGENT, "pools.default.scale.sla.aim=301s"), "pools.default.scale.sla.aim is 301s: at most 5m"),
                ((*self.AGENT, "scaler.agent.coldStart=1h1s"), "scaler.agent.coldStart is 1h1s: at most 1h"),
                ((*made, "tls.certManager.duration=30m"), "tls.certManager.duration is 30m: at least 1h"),
                ((*made, "tls.certManager.renewBefore=90d"), "at '/tls/certManager/renewBefore'"),
                ((*made, "tls.certManager.renewBefore=2160h"), "renewBefore is 2160h, duration 2160h")):
            self.assertIn(said, self.refusal(*values))
        self.render(*self.AGENT, *made, "mesh.lease=12h", "controller.ownershipLease=9m59.9s", "scaler.agent.coldStart=0s",
                    "pools.default.scale.sla.aim=4m60s", "tls.certManager.duration=1h", "tls.certManager.renewBefore=59m")

    def test_two_components_that_would_make_one_account(self):
        shared = ("initiator.serviceAccount.name=mesh", "controller.serviceAccount.name=mesh")
        self.assertIn("serviceAccount.name of controller and of initiator is mesh", self.refusal(*shared))
        self.assertIn("serviceAccount.name of initiator and of nats is muster-nats",
                      self.refusal("initiator.serviceAccount.name=muster-nats"))
        accounts = self.render(*shared, "initiator.serviceAccount.create=false").of("ServiceAccount")
        self.assertEqual(set(accounts), {"mesh", "muster-processor", "muster-nats"})
        self.render("initiator.serviceAccount.name=muster-queue-gateway")  # there is none

    def test_more_copies_than_servers(self):
        for servers, copies in ((1, 3), (3, 5)):
            self.assertIn(f"nats.streamReplicas is {copies}, nats.replicas {servers}", self.refusal(
                f"nats.replicas={servers}", f"nats.streamReplicas={copies}"))
        self.render("nats.replicas=3", "nats.streamReplicas=1")
        self.render("nats.enabled=false", "nats.url=nats://n:4222", "nats.streamReplicas=5")

    def test_less_memory_than_a_server_wants_for_the_streams_in_memory(self):
        layout = (chart.ROOT / "muster/queue/jetstream/stream_layout.cc").read_text(encoding="utf-8")
        sizes = list(map(int, re.findall(r"constexpr int64_t kMax\w+Bytes = int64_t\{(\d+)\} << 20;", layout)))
        self.assertEqual((len(sizes), layout.count('"storage", "memory"')), (2, 2))
        needed = sum(sizes) + max(sizes)
        for size in (f"{needed - 1}MB", "1K"):
            self.assertIn(f"nats.memoryStore is {size}: the services wait for a server that has {needed}MB",
                          self.refusal(f"nats.memoryStore={size}"))
        self.render(f"nats.memoryStore={needed}MB")
        self.render("nats.enabled=false", "nats.url=nats://n:4222", "nats.memoryStore=1K")

    def test_a_store_that_its_volume_does_not_hold(self):
        for store, volume in (("9GB", "9Gi"), ("90GB", "10Gi"), ("1TB", "100Gi"), ("9000MB", "5G"),
                              ("10240MB", "10Gi"), ("2G", "1.5Gi")):
            values = (f"nats.fileStore={store}", f"nats.persistence.size={volume}")
            with self.subTest(values):
                self.assertIn(f"nats.fileStore is {store}, nats.persistence.size {volume}", self.refusal(*values))
                self.render(*values, "nats.persistence.enabled=false")
        for store, volume in (("9GB", "10Gi"), ("9G", "9Gi"), ("900GB", "1Ti"), ("1GB", "1.5Gi"), ("512MB", "1Gi")):
            with self.subTest(store=store, volume=volume):
                self.render(f"nats.fileStore={store}", f"nats.persistence.size={volume}")


class RepeatsTest(ChartTest):
    """What the chart sets itself, or what stands there twice, is refused with its component and name: Helm would
    keep one of the two, and not say which."""

    # By the path of their values, as refusals name them: what all pools have is refused for one of them.
    COMPONENTS = {"initiator": "initiator", "controller": "controller", "processor": "pools.default",
                  "pools.default": "pools.default", "scaler.agent": "scaler.agent", "queueGateway": "queueGateway"}
    ALL = (*GATEWAY, "scaler.mode=agent", "pools.default.jobs={retail}")

    def test_variables(self):
        for path, where in (*self.COMPONENTS.items(), ("nats", "nats")):
            for name in ("POD_NAME", "MUSTER_NATS_PASSWORD" if path == "nats" else "MUSTER_NATS"):
                said = self.refusal(*self.ALL, f"{path}.extraEnv[0].name={name}", f"{path}.extraEnv[0].value=x")
                self.assertIn(f"{where}.extraEnv: {name} is set by the chart", said)
            said = self.refusal(*self.ALL, *(f"{path}.extraEnv[{i}].{key}" for i in (0, 1)
                                             for key in ("name=TZ", "value=UTC")))
            self.assertIn(f"{where}.extraEnv: TZ is there twice", said)

    def test_variables_that_come_with_other_values(self):
        for name, values in (("MUSTER_TLS_CERT", EXISTING_TLS), ("MUSTER_ACCOUNT_FILE", ()),
                             ("OTEL_EXPORTER_OTLP_ENDPOINT", ("otel.endpoint=http://c:4317",))):
            self.assertIn(f"queueGateway.extraEnv: {name} is set by the chart", self.refusal(
                *GATEWAY, *values, f"queueGateway.extraEnv[0].name={name}", "queueGateway.extraEnv[0].value=x"))
        self.render(*GATEWAY, "queueGateway.extraEnv[0].name=MUSTER_TLS_CERT", "queueGateway.extraEnv[0].value=x",
                    "initiator.extraEnv[0].name=OTEL_EXPORTER_OTLP_ENDPOINT", "initiator.extraEnv[0].value=x")

    def test_options(self):
        for path, where in self.COMPONENTS.items():
            for option in ("--listen=0.0.0.0:1", "--log-level=debug", "--allow-plaintext"):
                said = self.refusal(*self.ALL, f"{path}.extraArgs={{{option}}}")
                self.assertIn(f"{where}.extraArgs: {option.partition('=')[0]} is set by the chart", said)
        self.assertIn("initiator.extraArgs: --trace-sample is there twice",
                      self.refusal("initiator.extraArgs={--trace-sample=1,--trace-sample=0}"))
        self.assertIn("initiator.extraArgs: --trace-sample is set by the chart",
                      self.refusal("initiator.extraArgs={--trace-sample=1}", "initiator.traceSample=1"))
        # These make a list.
        self.render("processor.jobs={retail}", "processor.extraArgs={--job=urgent,--job=late}")

    def test_volumes_and_mounts(self):
        for path, where in self.COMPONENTS.items():
            said = self.refusal(*self.ALL, *EXISTING_TLS, "policy.enabled=true",
                                f"{path}.extraVolumes[0].name=tls")
            self.assertIn(f"{where}.extraVolumes: tls is set by the chart", said)
            self.assertIn(f"{where}.extraVolumeMounts: /tmp is set by the chart", self.refusal(
                *self.ALL, f"{path}.extraVolumeMounts[0].name=tmp", f"{path}.extraVolumeMounts[0].mountPath=/tmp"))
        self.assertIn("initiator.extraVolumes: volume is set by the chart",
                      self.refusal("initiator.extraVolumes[0].name=volume"))
        self.assertIn("initiator.extraVolumes: mine is there twice", self.refusal(
            "initiator.extraVolumes[0].name=mine", "initiator.extraVolumes[1].name=mine"))

    def test_labels_of_monitors_and_dashboards_and_the_annotation_by_which_nats_starts_again(self):
        self.assertIn("nats.podAnnotations: checksum/config is set by the chart",
                      self.refusal("nats.podAnnotations.checksum/config=x"))
        for path in ("metrics.serviceMonitor", "metrics.podMonitor", "metrics.prometheusRule", "dashboards"):
            values = ("metrics.enabled=true", f"{path}.enabled=true")
            self.assertIn(f"{path}.labels: app.kubernetes.io/instance is set by the chart",
                          self.refusal(*values, path + r".labels.app\.kubernetes\.io/instance=x"))
            self.render(*values, f"{path}.labels.release=of-mine")

    def test_containers(self):
        self.assertIn("pools.default.extraContainers: processor is set by the chart",
                      self.refusal("processor.extraContainers[0].name=processor"))


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


class BurstTest(ChartTest):
    """What the pod of `helm test` is told; tests/helm/burst_test.py runs it."""

    AGENT = ("scaler.mode=agent", "pools.default.jobs={retail,helm-test}")

    def told(self, *values):
        [container] = self.render(*values).get("Pod", "muster-test")["spec"]["containers"]
        return {each["name"]: each["value"] for each in container["env"]}

    def test_it_begins_and_ends_at_zero_where_the_agents_number_goes_there(self):
        keda = ("scaler.mode=keda", "pools.default.jobs={helm-test=4}", "metrics.enabled=true")
        for values in (self.AGENT, keda):
            self.assertEqual(self.told(*values)["POOLS"], "default")
        # A pool that works for the job, and grows for another one.
        self.assertEqual(self.told(*self.AGENT, "pools.more.jobs={helm-test}", "pools.more.scale.queues={more}",
                                   "pools.other.jobs={other}")["POOLS"], "default")
        for values in ((), (*self.AGENT, "pools.default.scale.min=1"), (*self.AGENT, "tests.zeroSeconds=0"),
                       (*self.AGENT, "scaler.agent.act=false"), (*keda, "scaler.keda.prometheus=http://p:9090"),
                       ("scaler.mode=hpa", "pools.default.jobs={helm-test}", "metrics.enabled=true")):
            self.assertEqual(self.told(*values)["POOLS"], "", values)

    def test_its_promises_are_those_of_the_values(self):
        bounds = ("SLA_SECONDS", "P95_SECONDS", "ZERO_SECONDS")

        def told(*values):
            return tuple(int(self.told(*values)[each]) for each in bounds)
        self.assertEqual(told(), (120, 90, 60))
        self.assertEqual(told("tests.slaSeconds=1", "tests.zeroSeconds=9"), (1, 1, 9))
        self.assertEqual(told("tests.slaSeconds=400", "tests.p95Seconds=7"), (400, 7, 60))
        self.assertIn("tests.p95Seconds is 200, tests.slaSeconds 120", self.refusal("tests.p95Seconds=200"))

    def test_the_policy_lets_it_see_replicas_only_where_it_looks_at_them(self):
        def methods(*values):
            text = self.render(*EXISTING_TLS, "policy.enabled=true", *values).get("ConfigMap", "muster-policy")["data"]
            [role] = [role for role in yaml.safe_load(text["policy.yaml"])["roles"] if role["name"] == "helm-test"]
            return role["methods"]
        self.assertIn("muster.v1.ScalingService/ListTargets", methods(*self.AGENT))
        self.assertEqual([each for each in methods() if "Scaling" in each], [])


class QueueGatewayTest(ChartTest):
    ALL = "a queue gateway with all that it may have"

    def container(self, name):
        return rendered(name).container("Deployment", "muster-queue-gateway")

    def test_there_is_none_unless_it_is_asked_for_with_accounts(self):
        for name in ("defaults", "production"):
            for one in rendered(name).all:
                self.assertNotIn("queue-gateway", one["metadata"]["name"])
        self.assertIn("queueGateway.accounts.existingSecret", self.refusal("queueGateway.enabled=true"))

    def test_one_that_goes_serves_until_no_node_sends_it_connections(self):
        pod = rendered("a queue gateway").get("Deployment", "muster-queue-gateway")["spec"]["template"]["spec"]
        command, seconds = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
        self.assertEqual(command, "sleep")
        [drain] = [argument for argument in pod["containers"][0]["args"] if argument.startswith("--drain-grace=")]
        exit_slack = 5  # in which the process gives up by itself
        self.assertGreater(pod["terminationGracePeriodSeconds"],
                           int(seconds) + int(drain.partition("=")[2].rstrip("s")) + exit_slack)

    def test_accounts_come_from_a_file_of_a_secret(self):
        pod = rendered("a queue gateway").get(
            "Deployment", "muster-queue-gateway")["spec"]["template"]["spec"]
        self.assertIn({"name": "accounts", "secret": {"secretName": "shops", "defaultMode": 0o440}},
                      pod["volumes"])
        [container] = pod["containers"]
        [mount] = [mount for mount in container["volumeMounts"] if mount["name"] == "accounts"]
        self.assertTrue(mount["readOnly"])
        self.assertIn({"name": "MUSTER_ACCOUNT_FILE", "value": f"{mount['mountPath']}/accounts"},
                      container["env"])
        # The account of the mesh is no account of the gateway's clients.
        self.assertFalse([told for told in container["args"] if told.startswith("--account=")])

    def test_probes_ask_over_http(self):
        container = self.container(self.ALL)
        self.assertEqual(container["readinessProbe"]["httpGet"], {"path": "/readyz", "port": "health"})
        self.assertIn({"name": "health", "containerPort": 10081}, container["ports"])
        self.assertIn("--health=0.0.0.0:10081", container["args"])

    def test_clients_get_https_by_its_own_certificate_or_that_of_the_services(self):
        def certificate(args):
            return [told.partition("=")[2] for told in args if told.startswith("--cert=")]
        self.assertEqual(certificate(self.container("a queue gateway")["args"]), [])
        self.assertEqual(certificate(self.container(self.ALL)["args"]), ["/etc/muster/https/tls.crt"])
        services = self.render(*GATEWAY, *EXISTING_TLS).container("Deployment", "muster-queue-gateway")
        self.assertEqual(certificate(services["args"]), ["/etc/muster/tls/tls.crt"])
        names = self.render(*GATEWAY, files=(PRODUCTION,)).of(
            "Certificate")["muster-services"]["spec"]["dnsNames"]
        for name in ("muster-queue-gateway.mesh.svc.cluster.local",
                     "muster-queue-gateway-pods.mesh.svc.cluster.local"):
            self.assertIn(name, names)

    def test_operators_have_a_port_of_their_own_if_they_want_one(self):
        self.assertFalse([told for told in self.container("a queue gateway")["args"]
                          if told.startswith("--admin")])
        container = self.container(self.ALL)
        self.assertIn("--admin=0.0.0.0:7705", container["args"])
        self.assertIn("--policy=/etc/muster/policy/policy.yaml", container["args"])
        services = rendered(self.ALL).of("Service")
        self.assertEqual([port["port"] for port in services["muster-queue-gateway"]["spec"]["ports"]],
                         [10001])
        self.assertEqual([port["port"] for port in services["muster-queue-gateway-pods"]["spec"]["ports"]],
                         [10081, 7705, 7794])

    def test_targets_are_set(self):
        told = self.container(self.ALL)["args"]
        self.assertIn("--queue-requests=500", told)
        self.assertIn("--account-requests=1000000", told)
        self.assertIn("queueRequests", self.refusal(*GATEWAY, "queueGateway.queueRequests=-1"))

    def test_only_clients_reach_it_and_it_reaches_only_nats(self):
        policies = rendered(self.ALL).of("NetworkPolicy")
        spec = policies["muster-queue-gateway"]["spec"]
        self.assertEqual([[port["port"] for port in rule["ports"]] for rule in spec["ingress"]],
                         [[10001], [10081], [7705], [7794]])
        self.assertIn({"ipBlock": {"cidr": "10.0.0.0/8"}}, spec["ingress"][0]["from"])
        self.assertNotIn({"ipBlock": {"cidr": "10.0.0.0/8"}}, spec["ingress"][2]["from"])
        self.assertEqual([rule["ports"] for rule in spec["egress"]],
                         [[{"protocol": "TCP", "port": 4222}]])
        callers = policies["muster-nats"]["spec"]["ingress"][0]["from"][0]["podSelector"]
        self.assertIn("queue-gateway", callers["matchExpressions"][0]["values"])
        self.assertNotIn("queue-gateway", json.dumps(
            rendered("defaults").get("NetworkPolicy", "muster-nats")))

    def test_prometheus_finds_its_metrics(self):
        [service] = [one for one in rendered(self.ALL).of("Service").values()
                     if one["metadata"]["labels"].get("app.kubernetes.io/component") == "queue-gateway"
                     and "muster.io/headless" in one["metadata"]["labels"]]
        self.assertIn({"name": "metrics", "port": 7794, "targetPort": "metrics"},
                      service["spec"]["ports"])

    def test_helm_test_asks_where_the_probes_do(self):
        [container] = rendered("a queue gateway").get("Pod", "muster-queue-gateway-test")["spec"]["containers"]
        self.assertEqual([*container["command"], *container["args"]], [
            "muster", "doctor", "--gateway=muster-queue-gateway-pods.mesh.svc.cluster.local:10081"])


class NotesTest(ChartTest):
    """What is printed after an install; without a cluster, in a manifest of a copy of the chart."""

    def notes(self, *values):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "muster"
            shutil.copytree(CHART, copy)
            text = (copy / "templates/NOTES.txt").read_text(encoding="utf-8")
            (copy / "templates/notes.yaml").write_text(
                '{{- define "notes" -}}' + text + '{{- end }}'
                '{kind: Notes, metadata: {name: notes}, text: {{ include "notes" . | toJson }}}')
            done = chart.helm("template", "muster", copy, "--namespace", NAMESPACE, *chart.options_of(values))
        self.assertEqual(done.returncode, 0, done.stderr)
        return chart.Manifests(done.stdout).get("Notes", "notes")["text"]

    def test_a_batch_is_printed_for_a_job_that_a_pool_works_for(self):
        self.assertIn("name: helm-test\n", self.notes())
        said = self.notes("pools.default.jobs={retail,urgent=4}")
        self.assertIn("muster batch submit retail ", said)
        # An example in the name of a job of the user's would replace it.
        self.assertNotIn("name: ", said)
        self.assertIn("no pool works for its job, helm-test (pools.*.jobs)", said)

    def test_a_client_outside_of_the_pods_shows_its_certificate_where_it_has_to(self):
        jobs = "pools.default.jobs={retail}"
        shown = "export MUSTER_SERVER=localhost:7700 MUSTER_TLS_CERT=client.crt MUSTER_TLS_KEY=client.key MUSTER_TLS_ROOTS="
        for values in ((jobs,), (jobs, "policy.enabled=true"), ("policy.enabled=true", "tests.enabled=false")):
            self.assertIn(shown, self.notes(*EXISTING_TLS, *values))
        self.assertNotIn("MUSTER_TLS", self.notes(jobs))

    def test_under_a_policy_a_batch_is_pasted_with_the_certificate_of_helm_test(self):
        for values in ((), ("pools.default.jobs={retail,helm-test=4}",)):
            said = self.notes(*EXISTING_TLS, "policy.enabled=true", *values)
            self.assertIn('get secret client -o "go-template={{index .data \\"$file\\" | base64decode}}"', said)
            self.assertIn("name: helm-test\n", said)
            self.assertNotIn("with the `muster` command on your machine", said)
        # The pod's own certificate is good for all without one.
        self.assertNotIn("get secret", self.notes(*EXISTING_TLS))

    def test_it_says_why_there_is_no_helm_test(self):
        self.assertIn("helm test muster", self.notes())
        said = self.notes(*GATEWAY, "pools.default.jobs={retail}")  # whose pod is there
        self.assertIn("asks the queue gateway alone: no pool works for its job", said)
        said = self.notes("tests.enabled=false")
        self.assertIn("tests.enabled is false", said)
        self.assertNotIn("no pool works", said)


class MonitoringTest(ChartTest):
    def test_a_pod_monitor_finds_the_metrics_of_every_service(self):
        values = (*GATEWAY, "scaler.mode=agent", "pools.default.jobs={retail}", "metrics.enabled=true",
                  "metrics.podMonitor.enabled=true", "metrics.podMonitor.interval=30s",
                  "metrics.podMonitor.labels.release=of-mine")
        manifests = self.render(*values)
        monitor = manifests.get("PodMonitor", "muster")
        self.assertEqual(monitor["metadata"]["labels"]["release"], "of-mine")
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        self.assertEqual((endpoint["port"], endpoint["path"], endpoint["interval"]), ("metrics", "/metrics", "30s"))
        self.assertEqual(monitor["spec"]["namespaceSelector"], {"matchNames": [NAMESPACE]})
        selector = monitor["spec"]["selector"]
        found = set()
        for one in manifests.workloads():
            labels = one["spec"]["template"]["metadata"]["labels"]
            ports = {port["name"] for port in one["spec"]["template"]["spec"]["containers"][0]["ports"]}
            if selector["matchLabels"].items() <= labels.items():
                found.add(one["metadata"]["name"])
            self.assertEqual("metrics" in ports, one["metadata"]["name"] != "muster-nats")
        self.assertEqual(len(found), 6)
        self.assertNotIn("ServiceMonitor", {one["kind"] for one in manifests.all})

    def test_the_alerts_find_the_scrape_job_by_any_name_of_the_chart(self):
        [job] = set(re.findall(r'up\{job=~"([^"]*)"', (CHART / "alerts.yaml").read_text(encoding="utf-8")))
        for kind, endpoints in (("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")):
            monitor = self.render("nameOverride=mesh", "metrics.enabled=true",
                                  f"metrics.{kind[0].lower() + kind[1:]}.enabled=true").get(kind, "muster-mesh")
            [endpoint] = monitor["spec"][endpoints]
            [relabeling] = endpoint["relabelings"]
            self.assertEqual(relabeling["targetLabel"], "job")
            self.assertRegex(relabeling["replacement"], f"^({job})$")

    def test_one_of_the_two_monitors_scrapes(self):
        self.assertIn("need metrics.enabled", self.refusal("metrics.podMonitor.enabled=true"))
        self.assertIn("each pod would be scraped twice", self.refusal(
            "metrics.enabled=true", "metrics.podMonitor.enabled=true", "metrics.serviceMonitor.enabled=true"))


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


class ReadmeTest(ChartTest):
    def test_the_chart_shows_a_current_reference_of_its_values(self):
        done = subprocess.run([sys.executable, "-B", chart.ROOT / "scripts/make_chart_docs", "--check"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        shown = chart.helm("show", "readme", CHART).stdout
        for value in ("`nats.replicas`", "`scaler.takeOver`", "`processor.scale.sla.max`", "`pools.NAME`"):
            self.assertIn(f"| {value} |", shown)


class SchemaTest(ChartTest):
    SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))

    def nodes(self, node=None, path=""):
        node = self.SCHEMA if node is None else node
        yield path, node
        for table in ("properties", "definitions"):
            for name, child in node.get(table, {}).items():
                yield from self.nodes(child, f"{path}/{name}")
        for name, child in node.get("patternProperties", {}).items():
            yield from self.nodes(child, f"{path}/{name}")
        for name in ("items", "additionalProperties"):
            if isinstance(node.get(name), dict):
                yield from self.nodes(node[name], f"{path}/{name}")

    def test_a_wrong_key_is_refused_by_its_name(self):
        for key in ("colour", "nats.replica", "initiator.pdb.enable", "pools.default.thread",
                    "tls.certManager.issuer", "networkPolicy.apiServer.port", "scaler.keda.query",
                    "processor.scale.sla.maximum", "metrics.serviceMonitor.period", "image.name"):
            self.assertIn(f"'{key.rpartition('.')[2]}' not allowed", self.refusal(f"{key}=1"))

    # With propertyNames, the reader of schemas that Helm 3.22 has names some other place.
    def test_a_name_that_no_pool_can_have_is_refused_with_its_place(self):
        for name in ("Urgent", "2nd", "late-", "a" * 21):
            self.assertIn(f"at '/pools': additional properties '{name}' not allowed", self.refusal(f"pools.{name}.threads=1"))
        self.render(f"pools.{'a' * 20}.threads=1", "pools.a-2.threads=1")

    def test_a_wrong_value_is_refused_with_its_place(self):
        for value in ("nats.replicas=2", "mesh.logLevel=loud", "pools.default.threads=0",
                      "pools.default.jobs={a b}", "scaler.mode=magic", "mesh.lease=soon",
                      "initiator.replicas=many", "nats.url=http://n"):
            place = "/" + value.partition("=")[0].replace(".", "/")
            self.assertIn(f"at '{place}", self.refusal(value))

    def test_what_the_reader_of_a_value_would_refuse_is_refused_at_once(self):
        for value in ("mesh.lease=5s1m", "processor.scale.sla.max=", "controller.ownershipLease=1m1h",
                      "tls.certManager.duration=90d", "metrics.serviceMonitor.interval=1.5s", "processor.jobs={retail=0}",
                      "processor.jobs={retail=1001}", "processor.jobs={Retail}", "processor.jobs={2nd}", "tests.job=2nd",
                      "fullnameOverride=My_Mesh", "fullnameOverride=1st", "nameOverride=mesh-", "initiator.maxQueueBytes=0B",
                      "initiator.maxStoppedUploadBytes=00MiB", "initiator.maxStoppedUploads=1000001",
                      "policy.clientMembers={client}", "policy.serviceMembers={CN:a}"):
            self.assertIn("at '/" + value.partition("=")[0].replace(".", "/"), self.refusal(value))
        self.render("mesh.lease=1m30s500ms", "processor.scale.sla.aim=", "tls.certManager.renewBefore=1.5h",
                    "metrics.podMonitor.interval=1m30s", "processor.jobs={retail=1000}", "fullnameOverride=mesh.b")

    def test_an_image_that_no_node_could_pull_and_an_amount_that_is_none_are_refused(self):
        for value in ("image.repository=", "image.repository=Muster", "image.repository=r/muster:1.0", "image.tag=a b",
                      "image.tag=1.0@sha256:1", "image.digest=latest", "nats.image.tag=", "controller.image.tag=-1",
                      "processor.image.repository=https://r/muster", "pools.default.image.digest=sha256:1",
                      "clusterDomain=", "clusterDomain=cluster local", "initiator.resources.limits.memory=1GB",
                      "nats.resources.requests.cpu=half", "tests.resources.requests.memory=64 Mi"):
            self.assertIn("at '/" + value.partition("=")[0].replace(".", "/"), self.refusal(value))
        self.assertIn("at '/processor/resources/limits': additional properties 'mem' not allowed",
                      self.refusal("processor.resources.limits.mem=1Gi"))
        digest = "sha256:" + "a1" * 32
        self.render("image.repository=Registry.lan:5000/team/muster_x.y--z", "image.tag=v1.0_2-rc.1",
                    f"nats.image.digest={digest}", "nats.image.repository=[fd00::1]/nats",
                    "controller.image.repository=[fd00::1]:5000/muster", "initiator.resources.limits.memory=1.5Gi",
                    "initiator.resources.limits.cpu=2", "processor.resources.limits.example\\.org/gpu=1",
                    "processor.resources.requests.ephemeral-storage=1e9", "nats.resources.requests.cpu=.5")

    def test_a_network_policy_is_never_left_without_its_ports_which_would_open_them_all(self):
        for key in ("networkPolicy.natsPorts", "networkPolicy.apiServer.ports"):
            done = chart.template("nats.enabled=false", "nats.url=nats://n:4222", more=("--set-json", f"{key}=[]"))
            self.assertIn("at '/" + key.replace(".", "/"), done.stderr)

    def test_a_collector_is_an_address_that_every_exporter_reads_alike(self):
        for endpoint in ("http://c:4317", "https://c.mesh.svc", "http://10.0.0.1:4318", "http://[fd00::1]:4318"):
            self.render(f"otel.endpoint={endpoint}")
        for endpoint in ("c:4317", "HTTP://c:4317", "http://c:4317/", "https://c/otlp", "http://", "grpc://c:4317",
                         "http://c:port", "http://a b", "http://me:secret@c:4317", "http://c:4317?a=b"):
            self.assertIn("at '/otel/endpoint'", self.refusal(f"otel.endpoint={endpoint}"))

    def test_the_services_may_reach_the_collector_that_they_are_told_of(self):
        for endpoint, port in (("http://c:4317", 4317), ("http://[fd00::1]:4318", 4318), ("https://c:8443", 8443),
                               ("https://c.mesh.svc", 443), ("http://[fd00::1]", 80)):
            policies = self.render(f"otel.endpoint={endpoint}", *GATEWAY, "scaler.mode=agent",
                                   "pools.default.jobs={retail}").of("NetworkPolicy")
            for component in ("initiator", "controller", "processor", "scaling-agent", "queue-gateway"):
                self.assertIn({"ports": [{"protocol": "TCP", "port": port}]},
                              policies[f"muster-{component}"]["spec"]["egress"], endpoint)
            for other in ("nats", "test"):
                self.assertNotIn(f'"port": {port}}}', json.dumps(policies[f"muster-{other}"]))

    def test_names_are_asked_for_at_pods_and_at_the_cache_of_a_node(self):
        def peers(*values):
            [rule] = self.render(*values).get("NetworkPolicy", "muster-dns")["spec"]["egress"]
            self.assertEqual([port["port"] for port in rule["ports"]], [53, 53])
            return rule["to"]

        # Of a node's own network: no selector finds it.
        self.assertEqual(peers(), [{"namespaceSelector": {}}, {"ipBlock": {"cidr": "169.254.20.10/32"}}])
        self.assertEqual(peers("networkPolicy.dns[0].ipBlock.cidr=10.96.0.10/32"),
                         [{"ipBlock": {"cidr": "10.96.0.10/32"}}])
        done = chart.template(more=("--set-json", "networkPolicy.dns=[]"))  # which would let everything out
        self.assertIn("at '/networkPolicy/dns", done.stderr)

    def test_a_fraction_may_be_set_on_the_command_line(self):
        manifests = self.render("scaler.mode=agent", "pools.default.jobs={retail}", "initiator.traceSample=0.25",
                                "pools.default.scale.patience=0.75", "scaler.agent.replicaCores=1.5")
        self.assertIn("--trace-sample=0.25", manifests.container("StatefulSet", "muster-initiator")["args"])
        self.assertIn("--replica-cores=1.5", manifests.container("StatefulSet", "muster-scaling-agent")["args"])
        rules = yaml.safe_load(manifests.get("ConfigMap", "muster-scaling-agent")["data"]["rules.yaml"])
        self.assertEqual(rules["targets"]["default"]["patience"], 0.75)
        for value in ("initiator.traceSample=1.5", "pools.default.scale.patience=much",
                      "scaler.agent.replicaCores=-1.5"):
            self.assertIn("at '/" + value.partition("=")[0].replace(".", "/"), self.refusal(value))

    def test_every_object_is_closed_but_for_those_of_kubernetes(self):
        for path, node in self.nodes():
            if node.get("type") != "object":
                continue
            self.assertIn("additionalProperties", node, path)
            if node["additionalProperties"] is True:
                self.assertEqual(path, "/kubernetes")

    def test_every_property_is_described(self):
        for path, node in self.nodes():
            for name, child in node.get("properties", {}).items():
                shown = child
                if "$ref" in child:
                    shown = self.SCHEMA["definitions"][child["$ref"].rpartition("/")[2]]
                self.assertTrue(shown.get("description"), f"{path}/{name}")

    def test_every_value_of_the_chart_is_in_the_schema_and_every_property_has_a_value(self):
        values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
        open_ones = {"initialDelaySeconds", "claims", "limits", "requests", "global"}

        def compare(schema, value, path):
            schema = self.resolved(schema)
            if not isinstance(value, dict) or not schema.get("properties"):
                return
            self.assertEqual(set(value), set(schema["properties"]) - (open_ones - set(value)), path)
            for name, child in value.items():
                compare(schema["properties"][name], child, f"{path}.{name}")

        compare(self.SCHEMA, values, "")

    # null takes a value's default out, which Helm does before it looks at the schema.
    def test_every_value_that_has_to_say_something_is_required(self):
        resources, *filled_up = (self.SCHEMA["definitions"][name] for name in ("resources", "ownImage", "probe"))
        own = {"pdb": {"enabled"}, "serviceAccount": {"create"}, "persistence": {"enabled", "size"}}

        def is_needed(schema, value):
            if isinstance(value, dict):
                return "minProperties" in schema or (bool(schema.get("properties")) and schema != resources)
            if isinstance(value, list):
                return "minItems" in schema
            return value not in (None, "") and "null" not in schema.get("type", ())

        def compare(schema, values, path):
            properties = {name: self.resolved(schema["properties"][name]) for name in values}
            if path.rpartition(".")[2] not in own:
                self.assertEqual({name for name in values if is_needed(properties[name], values[name])},
                                 set(schema.get("required", ())), path)
            for name, value in values.items():
                if name in own:
                    self.assertIn({"$ref": "#/definitions/component"}, schema["allOf"], path)
                if isinstance(value, dict) and properties[name].get("properties") and (
                        properties[name] not in (resources, *filled_up)):
                    compare(properties[name], value, f"{path}.{name}")

        compare(self.SCHEMA, yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), "")
        self.assertEqual({name: set(each["required"]) for name, each in self.SCHEMA["definitions"]["component"][
            "allOf"][0]["properties"].items()}, own)

    def test_null_in_place_of_a_value_is_refused_by_its_name(self):
        nulls = ("networkPolicy", "pools", "processor.threads", "tls.enabled", "initiator.persistence.enabled",
                 "nats.pdb.enabled", "scaler.agent.serviceAccount.create", "policy.serviceMembers")
        refusal = self.refusal(*(f"{value}=null" for value in nulls))
        for value in nulls:
            self.assertRegex(refusal, f"missing propert.*'{value.rpartition('.')[2]}'")

    def test_null_in_place_of_nothing_changes_nothing(self):
        values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))

        def empty(schema, values, path):
            for name, value in values.items():
                each = self.resolved(schema["properties"][name])
                if value and isinstance(value, dict) and each.get("properties"):
                    yield from empty(each, value, f"{path}{name}.")
                elif value in ("", [], {}):
                    yield f"{path}{name}"

        for given in ((), ("scaler.mode=agent", "pools.default.jobs={retail}", "tls.enabled=true",
                           "tls.certManager.enabled=true", "tls.certManager.issuerRef.name=ca", "policy.enabled=true",
                           "metrics.enabled=true", *GATEWAY)):
            said = {value.partition("=")[0] for value in given}
            nulls = [f"{name}=null" for name in empty(self.SCHEMA, values, "") if name not in said]
            self.assertEqual(*([one for one in self.render(*each).all if one["kind"] != "Secret"]
                               for each in (given, (*given, *nulls))))

    def resolved(self, node):
        while "$ref" in node or ("allOf" in node and "properties" not in node):
            node = node["allOf"][0] if "allOf" in node else (
                self.SCHEMA["definitions"][node["$ref"].rpartition("/")[2]])
        return node


class LintTest(ChartTest):
    def test_helm_lint_has_nothing_to_say(self):
        for files in ((), (PRODUCTION,), (DEVELOPMENT,)):
            done = chart.helm("lint", "--strict", CHART, "--kube-version", "1.36",
                              *chart.options_of(files=files))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("[WARNING]", done.stdout)

    def test_long_names_that_begin_alike_stay_apart(self):
        begin = "a-very-long-name-of-a-release-of"
        names = [{(one["kind"], one["metadata"]["name"]) for one in self.render(release=release).all}
                 for release in (begin + "-shop", begin + "-bank")]
        self.assertEqual(names[0] & names[1], set())
        # What fits stays as it is.
        self.assertIn("a-name-of-just-30-chars-muster", self.render(release="a-name-of-just-30-chars").of("Service"))
        self.assertIn("b" * 30, self.render("fullnameOverride=" + "b" * 30).of("Service"))

    def test_a_service_has_no_name_that_begins_with_a_digit(self):
        done = chart.template(release="2026")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("2026-muster begins with a digit, and the name of a Service with a letter", done.stderr)
        self.assertIn("mesh", self.render("fullnameOverride=mesh", release="2026").of("Service"))

    def test_long_and_odd_names_of_releases_fit(self):
        for release in ("a" * 53, "mesh.of-mine", "muster"):
            for one in self.render("pools.abcdefghij-abcdefghi.threads=1", release=release).all:
                self.assertRegex(one["metadata"]["name"], r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")

    def test_a_name_that_yaml_would_read_as_something_else_stays_a_name(self):
        """Secrets may be called on, and releases 1234."""
        names = {"name", "namespace", "secretName", "serviceAccountName", "priorityClassName", "pool", "target"}

        def check(found, path):
            for key, value in found.items() if isinstance(found, dict) else enumerate(found):
                if isinstance(value, (dict, list)):
                    check(value, [*path, key])
                elif key in names or path[-1] in ("labels", "matchLabels", "matchNames", "annotations"):
                    self.assertIsInstance(value, str, [*path, key])

        tls = ("tls.enabled=true", "tls.existingSecret=on", "tls.existingNatsSecret=off", "tls.existingClientSecret=yes")
        for values in ((*tls, "nats.enabled=false", "nats.existingSecret=no", "policy.enabled=true", "policy.existingConfigMap=off"),
                       (*tls, "scaler.mode=agent", "nats.existingSecret=yes", "processor.priorityClassName=on"),
                       (*tls, "scaler.mode=keda", "tests.enabled=false", "scaler.keda.authentication=no"),
                       ("scaler.mode=hpa", "metrics.enabled=true", "metrics.serviceMonitor.enabled=true")):
            for one in self.render(*values, "pools.default.jobs={retail}", "pools.on.jobs={urgent}", "fullnameOverride=mesh",
                                   release="1234").all:
                check(one, [one["kind"]])

    def test_dashboards_come_from_the_chart_if_it_has_any(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "muster"
            shutil.copytree(CHART, copy)
            (copy / "dashboards").mkdir(exist_ok=True)
            (copy / "dashboards/of_mine.json").write_text('{"title": "{{ of mine }}"}\n')
            done = chart.helm("template", "muster", copy, "--kube-version", "1.36",
                              *chart.options_of(("dashboards.enabled=true",)))
        self.assertEqual(done.returncode, 0, done.stderr)
        board = chart.Manifests(done.stdout).get("ConfigMap", "muster-of-mine")
        self.assertEqual(json.loads(board["data"]["of_mine.json"]), {"title": "{{ of mine }}"})
        self.assertEqual(board["metadata"]["labels"]["grafana_dashboard"], "1")

    def test_the_dashboards_of_the_repository_are_in_the_chart(self):
        maps = self.render("dashboards.enabled=true").of("ConfigMap")
        for name in ("muster", "muster-job"):
            board = maps[f"muster-{name}"]["data"][f"{name}.json"]
            self.assertEqual(json.loads(board), json.loads(
                (chart.ROOT / f"deploy/grafana/dashboards/{name}.json").read_text(encoding="utf-8")))
            self.assertNotIn(f"muster-{name}", rendered("defaults").of("ConfigMap"))

    def test_the_rules_are_those_of_the_repository(self):
        rules = rendered("production").of("PrometheusRule")
        self.assertEqual(set(rules), {"muster", "muster-recording"})
        for name, file in (("muster", "muster.rules.yaml"), ("muster-recording", "muster.recording.yaml")):
            self.assertEqual(rules[name]["spec"], yaml.safe_load(
                (chart.ROOT / "deploy/prometheus" / file).read_text(encoding="utf-8")))
            self.assertEqual(rules[name]["metadata"]["labels"], rules["muster"]["metadata"]["labels"])
        self.assertNotIn("PrometheusRule", {one["kind"] for one in rendered("defaults").all})


if __name__ == "__main__":
    chart.main()
