# SPDX-License-Identifier: Apache-2.0
"""Sets of values that a cluster might be given, and what the chart renders of each."""

import functools

import chart
from chart import DEVELOPMENT, PRODUCTION

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


@functools.lru_cache(maxsize=None)
def rendered(name):
    done = chart.template(*MATRIX[name].get("values", ()), files=MATRIX[name].get("files", ()))
    if done.returncode != 0:
        raise AssertionError(f"{name}: {done.stderr}")
    return chart.Manifests(done.stdout)


def each_rendered():
    for name in MATRIX:
        yield name, rendered(name)
