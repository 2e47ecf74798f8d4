#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The queue gateway of the chart."""

import json

import chart
from chart import PRODUCTION, ChartTest
from matrix import EXISTING_TLS, GATEWAY, rendered


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


if __name__ == "__main__":
    chart.main()
