#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What holds for the manifests of the chart, whatever the values."""

import json
import re

import chart
from chart import CHART, DEVELOPMENT, GRACE_SLACK_SECONDS, OF_OPERATORS, PRODUCTION, ChartTest
from matrix import each_rendered


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


if __name__ == "__main__":
    chart.main()
