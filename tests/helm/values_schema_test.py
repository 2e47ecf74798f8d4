#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The schema of the values: what it refuses, and that it is complete."""

import json

import yaml

import chart
from chart import CHART, ChartTest
from matrix import GATEWAY


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


if __name__ == "__main__":
    chart.main()
