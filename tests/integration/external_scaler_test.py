# SPDX-License-Identifier: Apache-2.0
"""KEDA's calls to scaling agents of a real mesh: as KEDA makes them, over one channel to all agents.

The stub is made from the proto by gRPC's own plugin for Python. The test is KEDA's other half, too: it
starts the processors.
"""

import importlib
import json
import math
import queue
import shutil
import subprocess
import sys
import threading
import time

import grpc
import harness
from harness import ROOT, retail_input
from mesh import READY_SECONDS
from scaling_agent_test import AgentTest, v1

ROWS = 20_000
RULES = """targets:
  retail-pool: {kind: deployment, name: processor, queues: [retail-in], sla: {max: 60s}, max: 5, actuator: external}
"""
GONE_SECONDS = 180


def load_stub():
    """The messages and the stub of KEDA's proto."""
    folder = harness.folder_of_program("muster-keda-")
    subprocess.run(
        [shutil.which("protoc"), f"--proto_path={ROOT / 'proto/externalscaler'}",
         f"--python_out={folder}", f"--grpc_python_out={folder}",
         f"--plugin=protoc-gen-grpc_python={shutil.which('grpc_python_plugin')}",
         "externalscaler.proto"], check=True)
    sys.path.insert(0, str(folder))
    return (importlib.import_module("externalscaler_pb2"),
            importlib.import_module("externalscaler_pb2_grpc"))


pb, pb_grpc = load_stub()


class Keda:
    """Asks about one ScaledObject, and takes the agents in turn, as KEDA does."""

    def __init__(self, agents, target):
        self.channel = grpc.insecure_channel(
            "ipv4:" + ",".join(agent.address for agent in agents),
            options=[("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}')])
        self.stub = pb_grpc.ExternalScalerStub(self.channel)
        metadata = {"scalerAddress": "muster-scaling-agent:7703"}
        if target:
            metadata["target"] = target
        self.ref = pb.ScaledObjectRef(name="processor", namespace="mesh", scalerMetadata=metadata)

    def call(self, method, request):
        return getattr(self.stub, method)(request, timeout=READY_SECONDS, wait_for_ready=True)

    def is_active(self):
        return self.call("IsActive", self.ref).result

    def spec(self):
        [spec] = self.call("GetMetricSpec", self.ref).metricSpecs
        return spec

    def replicas(self):
        """What KEDA's HPA makes of the metric."""
        spec = self.spec()
        [value] = self.call("GetMetrics", pb.GetMetricsRequest(
            scaledObjectRef=self.ref, metricName=spec.metricName)).metricValues
        assert value.metricName == spec.metricName
        assert value.metricValue == value.metricValueFloat
        return math.ceil(value.metricValueFloat / spec.targetSizeFloat)

    def refusal(self, method="IsActive"):
        """The status and the message of a call that is refused."""
        try:
            answer = self.call(method, self.ref)
            if method.startswith("Stream"):
                next(answer)
        except grpc.RpcError as error:
            return error.code(), error.details()
        raise AssertionError(f"{method} was not refused")


class Activity:
    """What a stream tells, read on a thread of its own; None: it has ended. What it says again, in `repeats`."""

    def __init__(self, keda):
        self.told = queue.Queue()
        self.repeats = 0
        self.stream = keda.stub.StreamIsActive(keda.ref, wait_for_ready=True)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        last = None
        try:
            for response in self.stream:
                if response.result == last:
                    self.repeats += 1
                    continue
                last = response.result
                self.told.put(last)
        except grpc.RpcError:
            pass  # code() tells
        self.told.put(None)

    def next(self, seconds=READY_SECONDS):
        return self.told.get(timeout=seconds)


class ExternalScalerTest(AgentTest):
    def write_rules(self, mode="act", most=5):
        return self.write("rules.yaml", RULES)

    def setUp(self):
        super().setUp()
        self.answer("job", "apply", harness.RETAIL_JOB)
        self.agents = [self.start_agent("--instance", f"agent-{name}") for name in "ab"]
        self.wait_until(lambda: any(agent.leads() for agent in self.agents))
        # Both know by now who leads.
        self.wait_until(lambda: all(agent.call("GetAgent").leader for agent in self.agents))
        self.keda = Keda(self.agents, "retail-pool")
        self.wait_until(lambda: self.replicas_or_none(self.keda) == 0)

    @staticmethod
    def replicas_or_none(keda):
        """None: no agent has decided yet."""
        try:
            return keda.replicas()
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                return None
            raise

    def decisions(self):
        [leader] = [agent for agent in self.agents if agent.leads()]
        return list(leader.call("ListDecisions", target="retail-pool").decisions)

    def test_a_burst_is_pushed_sized_and_over_when_it_is_done(self):
        # A stream of each agent: one of them leads, the other asks it.
        streams = [Activity(Keda([agent], "retail-pool")) for agent in self.agents]
        self.assertEqual([stream.next() for stream in streams], [False, False])
        self.assertFalse(self.keda.is_active())

        data = retail_input(ROWS)
        submission = self.start_submit("retail", data)
        self.assertEqual([stream.next() for stream in streams], [True, True])
        pushed = time.time()
        grown = next(decision for decision in reversed(self.decisions()) if decision.replicas > 0)
        print(f"pushed {pushed - grown.decided.ToNanoseconds() / 1e9:.3f} s after the decision",
              file=sys.stderr)
        for agent in self.agents:
            keda = Keda([agent], "retail-pool")
            self.assertTrue(keda.is_active())
            self.assertEqual(keda.replicas(), 1)  # no replica has worked yet, so no speed is known
        self.assertEqual(self.keda.spec().metricName, "muster_scale_desired")

        self.mesh.start_role("processor", None, "--threads", 1).await_ready()
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, 0, errors)
        self.assert_exact(data, ROWS, json.loads(out))
        self.assertEqual([stream.next(GONE_SECONDS) for stream in streams], [False, False])
        self.assertFalse(self.keda.is_active())
        self.assertEqual(self.keda.replicas(), 0)
        # The agent has left all of it to KEDA.
        for decision in self.decisions():
            self.assertEqual(decision.action.state, v1.ScalingAction.STATE_NOT_ASKED)

    def test_a_number_that_somebody_demands_is_served_whole(self):
        [leader] = [agent for agent in self.agents if agent.leads()]
        stream = Activity(self.keda)
        self.assertFalse(stream.next())
        leader.call("SetOverride", target="retail-pool", replicas=4, hold={"seconds": 3600})
        self.assertTrue(stream.next())
        for _ in self.agents:
            self.assertEqual(self.keda.replicas(), 4)
        self.wait_until(lambda: stream.repeats > 0)  # KEDA may not have listened

        # KEDA opens a stream again soon after one that ended with OK.
        self.assertEqual(leader.program.stop(), 0)
        self.assertIsNone(stream.next())
        self.assertEqual(stream.stream.code(), grpc.StatusCode.OK)
        [other] = [agent for agent in self.agents if agent is not leader]
        self.wait_until(other.leads)
        keda = Keda([other], "retail-pool")
        self.wait_until(lambda: self.replicas_or_none(keda) == 4)
        self.assertTrue(Activity(keda).next())

    def test_what_cannot_be_answered_says_why(self):
        for method in ("IsActive", "StreamIsActive", "GetMetricSpec"):
            self.assertEqual(
                Keda(self.agents, "").refusal(method),
                (grpc.StatusCode.INVALID_ARGUMENT,
                 "scalerMetadata.target: must name a target of the rules: retail-pool"))
            self.assertEqual(
                Keda(self.agents, "mail").refusal(method),
                (grpc.StatusCode.NOT_FOUND, "the rules have no target 'mail', but retail-pool"))


if __name__ == "__main__":
    harness.main()
