# SPDX-License-Identifier: Apache-2.0
"""The scaling agent beside the services, on a real NATS server: its readings, decisions and answers.

Needs Debian's grpcio: the tests call the agent over gRPC, as its clients do.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import time

import grpc
import harness
import mesh_case
from harness import ROOT, retail_input
from mesh import READY_SECONDS, Mesh, Program, free_address

AGENT = os.environ["MUSTER_SCALING_AGENT_PROGRAM"]
RULES = """mode: {mode}
targets:
  billing: {{kind: dry-run, name: processor, queues: [billing-in], sla: {{max: 300s}}, max: {most}}}
"""
# An outage has to last longer than heartbeats may be missing.
OUTAGE_SECONDS = 8
# A new leader lets no replica go before that.
SETTLE_SECONDS = 8


def load_messages():
    """The messages of the scaling service, as protoc makes them for Python."""
    folder = harness.folder_of_program("muster-messages-")
    subprocess.run(
        [shutil.which("protoc"), f"--proto_path={ROOT / 'proto'}", f"--python_out={folder}",
         "muster/v1/scaling_service.proto"], check=True)
    sys.path.insert(0, str(folder))
    return importlib.import_module("muster.v1.scaling_service_pb2")


v1 = load_messages()


class Agent:
    """A scaling agent with the dry-run actuator, and a client of it."""

    def __init__(self, mesh, rules, *more, actuator="dry-run"):
        self.address = free_address()
        self.program = mesh.add(Program(
            [AGENT, "--rules", rules, "--actuator", actuator, "--listen", self.address,
             *mesh.nats_arguments(), *more], "msg=ready"))
        self.channel = grpc.insecure_channel(self.address)

    def restart(self):
        self.program.restart()
        # The channel before may still be waiting to try again.
        self.channel.close()
        self.channel = grpc.insecure_channel(self.address)

    def call(self, method, **fields):
        request = getattr(v1, method + "Request")(**fields)
        response = getattr(v1, method + "Response")
        ask = self.channel.unary_unary(f"/muster.v1.ScalingService/{method}",
                                       type(request).SerializeToString, response.FromString)
        return ask(request, timeout=READY_SECONDS, wait_for_ready=True)

    def watch(self, **fields):
        """Returns an iterator of decisions, from now on."""
        request = v1.WatchDecisionsRequest(**fields)
        ask = self.channel.unary_stream("/muster.v1.ScalingService/WatchDecisions",
                                        type(request).SerializeToString,
                                        v1.WatchDecisionsResponse.FromString)
        call = ask(request, timeout=READY_SECONDS, wait_for_ready=True)
        call.initial_metadata()  # from here on the watch misses nothing
        return (response.decision for response in call)

    def leads(self):
        return self.call("GetAgent").leads

    def decisions(self):
        """Returns the decisions, newest first."""
        return list(self.call("ListDecisions", target="billing").decisions)

    def target(self):
        return self.call("ListTargets", target="billing").targets[0]


class AgentMesh(Mesh):
    """A mesh without processors until a test starts them."""

    def start(self):
        self.nats_cluster = [self.start_nats()]
        self.nats = self.nats_cluster[0]
        self.nats.await_ready()
        self.initiator = self.start_role("initiator", self.server)
        self.initiator.await_ready()
        self.controller = self.start_role("controller", self.reporter)
        self.controller.await_ready()


class AgentTest(mesh_case.MeshTest):
    def make_mesh(self):
        return AgentMesh(self.folder, self.nats_server, self.nats_servers)

    def setUp(self):
        super().setUp()
        self.rules = self.write_rules()

    def write_rules(self, mode="act", most=20):
        return self.write("rules.yaml", RULES.format(mode=mode, most=most))

    def start_agent(self, *more):
        agent = Agent(self.mesh, self.rules, *more)
        agent.program.await_ready()
        return agent

    def wait_until(self, reached, seconds=READY_SECONDS):
        """Waits until the result of `reached` is true, and returns it."""
        end = time.monotonic() + seconds
        while not (answer := reached()):
            if time.monotonic() > end:
                said = "".join(line for program in self.mesh.programs
                               for line in program.log.lines)
                self.fail(f"it never came to that:\n{said}")
            time.sleep(0.05)
        return answer

    def submit_without_processors(self):
        """Submits a batch for a handler that no processor has yet."""
        self.apply_billing()
        done = self.ask("batch", "submit", "billing", "--input", retail_input(mesh_case.ROWS),
                        "--handler-version", "1", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)


class DecideTest(AgentTest):
    def test_work_that_finds_nobody_has_the_first_one_started_and_says_why(self):
        recording = self.folder / "recording"
        agent = self.start_agent("--record", recording)
        self.wait_until(agent.leads)  # before, it decides nothing, and says so
        idle = self.wait_until(agent.decisions)[0]
        self.assertEqual((idle.replicas, idle.binding), (0, "nothing"))
        watch = agent.watch(target="billing")
        self.submit_without_processors()
        submitted = time.time()
        grown = next(decision for decision in watch if decision.replicas > 0)
        took = grown.decided.ToNanoseconds() / 1e9 - submitted
        print(f"decided {took:.2f} s after the submission ended", file=sys.stderr)
        self.assertLess(took, 30)
        self.assertEqual((grown.replicas, grown.replicas_before), (1, 0))
        self.assertEqual(grown.binding, "deadline")
        self.assertIn("Grow from 0 to 1 replica. The queued work needs 1 by ", grown.explanation)

        whole = agent.call("GetDecision", decision=grown.id)
        self.assertEqual([candidate.by for candidate in whole.candidates][-1], "deadline")
        self.assertEqual(whole.inputs.max, 20)
        answered = next(decision for decision in watch
                        if decision.id == grown.id and decision.action.HasField("answered"))
        self.assertEqual(answered.action.state, v1.ScalingAction.STATE_NOT_ASKED)
        self.assertEqual(answered.action.after, 1)
        self.assertIn("not", answered.action.detail)
        target = self.wait_until(
            lambda: (seen := agent.target()).ready == mesh_case.ROWS // mesh_case.ROWS_PER_ITEM
            and seen)
        self.assertEqual((target.trouble, list(target.queues)), ("", ["billing-in"]))
        self.assertTrue(target.HasField("oldest_deadline"))

        self.mesh.start_role("processor", None, "--threads", 1).await_ready()
        self.wait_until(lambda: agent.target().replicas.ready == 1)
        self.assertEqual(agent.program.stop(), 0)
        replayed = self.muster("replay", "--recording", recording, "-o", "json")
        self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)
        self.assertTrue(json.loads(replayed.stdout)["same"])


class RulesTest(AgentTest):
    def test_bad_rules_are_refused_at_the_start_with_file_and_line(self):
        bad = self.write("bad.yaml", "mode: act\ntargets:\n  billing: {kind: cloud}\n")
        done = subprocess.run([AGENT, "--rules", bad, "--actuator", "dry-run"],
                              capture_output=True, text=True, timeout=READY_SECONDS)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, rf"{bad}:3:\d+: .*kind")

    def test_a_bad_edit_keeps_the_old_rules_and_a_good_one_is_taken_up(self):
        agent = self.start_agent()
        self.wait_until(agent.leads)
        old = agent.call("GetRules")
        self.write("rules.yaml", "mode: act\ntargets: {}\n")
        self.wait_until(lambda: agent.call("GetAgent").rules_refusals)
        about = agent.call("GetAgent")
        self.assertEqual((about.rules_refusals, about.rules_revision), (1, old.revision))
        self.assertIn("rules.yaml:2:", about.rules_refusal)
        self.assertEqual(agent.call("GetRules"), old)
        self.write_rules(mode="observe", most=7)
        self.wait_until(lambda: agent.call("GetRules").revision > old.revision)
        about = agent.call("GetAgent")
        self.assertEqual((about.mode, about.rules_refusal), (v1.SCALING_MODE_OBSERVE, ""))
        warned = sum("rules are refused" in line for line in agent.program.log.lines)
        self.assertEqual(warned, 1)


class LeadTest(AgentTest):
    def test_one_leads_and_when_it_is_killed_another_goes_on(self):
        agents = [self.start_agent("--instance", f"agent-{name}") for name in "ab"]
        [leader] = self.wait_until(lambda: [agent for agent in agents if agent.leads()])
        [other] = [agent for agent in agents if agent is not leader]
        about = leader.call("GetAgent")
        with self.assertRaises(grpc.RpcError) as refused:
            other.decisions()
        self.assertEqual(refused.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
        details = dict(refused.exception.trailing_metadata())["grpc-status-details-bin"]
        self.assertIn(b"NOT_LEADER", details)
        self.assertIn(leader.address.encode(), details)

        leader.call("SetOverride", target="billing", replicas=3, hold={"seconds": 3600})
        held = self.wait_until(lambda: [decision for decision in leader.decisions()
                                        if decision.binding == "override"])[0]
        leader.program.kill()
        killed = time.monotonic()
        self.wait_until(other.leads)
        took = time.monotonic() - killed
        print(f"another leads after {took:.1f} s", file=sys.stderr)
        self.assertLess(took, 30)
        self.assertGreater(other.call("GetAgent").fencing_token, about.fencing_token)
        # The demanded override stays, and ids count on.
        again = self.wait_until(other.decisions)[-1]
        self.assertEqual((again.binding, again.replicas), ("override", 3))
        self.assertGreater(int(again.id.rsplit("-", 1)[1]), int(held.id.rsplit("-", 1)[1]))
        other.call("ClearOverride", target="billing")
        self.wait_until(lambda: other.decisions()[0].binding != "override")

        leader.program.restart()
        self.assertFalse(leader.leads())
        self.assertEqual(leader.call("GetAgent").leader, other.address)

    def test_one_that_is_stopped_lets_go_at_once(self):
        agents = [self.start_agent("--instance", f"agent-{name}") for name in "ab"]
        [leader] = self.wait_until(lambda: [agent for agent in agents if agent.leads()])
        [other] = [agent for agent in agents if agent is not leader]
        self.assertEqual(leader.program.stop(), 0)
        self.wait_until(other.leads)


class OutageTest(AgentTest):
    def test_without_the_nats_server_nobody_is_let_go_and_all_resumes(self):
        for _ in range(2):
            self.mesh.start_role("processor", None, "--threads", 1).await_ready()
        gate = mesh_case.Gate(self.folder / "gate")
        self.addCleanup(gate.open)
        self.apply_billing(self.write("gated.py", mesh_case.GATED), gate.path)
        agent = self.start_agent()
        self.wait_until(agent.leads)
        submission = self.start_submit("billing", retail_input(mesh_case.ROWS))
        self.await_batch(1, lambda batch: batch["items_counted"] == mesh_case.FREE_ITEMS)
        self.wait_until(lambda: agent.target().replicas.ready == 2
                        and agent.decisions()[0].replicas >= 2)
        before = agent.decisions()[0]

        self.mesh.nats.kill()
        self.wait_until(lambda: not agent.leads())
        time.sleep(OUTAGE_SECONDS)  # this is the outage itself
        self.mesh.nats.restart()
        self.wait_until(agent.leads)
        self.wait_until(lambda: agent.target().replicas.ready == 2)
        time.sleep(SETTLE_SECONDS)  # until then no replica may go; afterwards none has a reason to
        number = int(before.id.rsplit("-", 1)[1])
        since = [decision for decision in agent.decisions()
                 if int(decision.id.rsplit("-", 1)[1]) > number]
        self.assertTrue(since)
        for decision in since:
            self.assertGreaterEqual(decision.replicas, before.replicas, decision.explanation)
        self.assertEqual(agent.target().trouble, "")

        gate.open()
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, 0, errors)
        self.assertTrue(json.loads(out)["complete"])


if __name__ == "__main__":
    harness.main()
