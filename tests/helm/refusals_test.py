#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values that contradict each other or repeat are refused by their names."""

import re

import chart
from chart import PRODUCTION, ChartTest
from matrix import EXISTING_TLS, GATEWAY


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


if __name__ == "__main__":
    chart.main()
