# SPDX-License-Identifier: Apache-2.0
"""Scale-in never kills work: processors come and go a hundred times while a batch runs.

An agent starts them as processes of this host and releases them while they hold work. The handler
records the begin of each item, so an item that begins twice, or is tried again, is visible.
"""

import collections
import json
import os
import subprocess
import time
import unittest

import harness
from harness import ROOT, retail_input
from mesh import READY_SECONDS, Mesh
from mesh_case import MeshTest

ROWS = 30000
ROWS_PER_ITEM = 10
REPLICAS = 4
SCALE_INS = 102
GRACE = "30s"

# Bills like the retail job, 100 to 300 ms for each item, until the file `hurry` exists.
# The program notes which replica has started it.
os.environ.setdefault("MUSTER_HANDLER_ENV", "MUSTER_INSTANCE")

SLOW = f'''
import json, os, random, sys, time
sys.path.insert(0, {str(ROOT / "examples/retail")!r})
import bill

def slowed(lines):
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
    for line in lines:
        work = json.loads(line)
        note = [os.environ["MUSTER_INSTANCE"], work["item"].split(":")[0], str(work["attempt"])]
        os.write(log, (" ".join(note) + "\\n").encode())
        if not os.path.exists(sys.argv[2]):
            time.sleep(random.uniform(0.1, 0.3))
        yield line

sys.stdin = slowed(sys.stdin)
bill.main()
'''


class MeshWithoutProcessors(Mesh):
    def start(self):
        self.nats = self.start_nats()
        self.nats.await_ready()
        self.start_role("initiator", self.server).await_ready()
        self.start_role("controller", self.reporter).await_ready()


class Agent:
    """Orders processors from actuate_processes, a program that carries out the orders."""

    def __init__(self, mesh, folder):
        self.token = 1
        self.process = subprocess.Popen(
            [os.environ["MUSTER_ACTUATE_PROGRAM"], folder, os.environ["MUSTER_KEEPER_PROGRAM"], GRACE,
             "60s", os.environ["MUSTER_PROCESSOR_PROGRAM"], *mesh.nats_arguments(), "--threads", "2",
             "--lease", f"{Mesh.LEASE_SECONDS}s", "--log-level", "error", "--log-format", "json"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise AssertionError(answer["error"])
        return answer

    def order(self, replicas, *let_go_first):
        return self.say(" ".join([str(self.token), str(replicas), *let_go_first]))

    def look(self):
        state = self.say("")
        if state["trouble"]:
            raise AssertionError(state["trouble"])
        return state["replicas"]

    def await_replicas(self, reached):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            replicas = self.look()
            if reached(replicas):
                return replicas
            time.sleep(0.01)
        raise AssertionError(f"never got there: {replicas}")

    def end(self):
        """Releases all replicas, and waits until they have gone."""
        if self.process.poll() is None:
            self.order(0)
            self.await_replicas(lambda replicas: not replicas)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class ScaleInTest(MeshTest):
    def make_mesh(self):
        return MeshWithoutProcessors(self.folder, self.nats_server, self.nats_servers)

    def setUp(self):
        super().setUp()
        self.begun = self.write("begun", "")
        self.hurry = self.folder / "hurry"
        self.agent = Agent(self.mesh, self.folder / "replicas")
        self.addCleanup(self.agent.end)

    def apply_slow_billing(self):
        text = (ROOT / "examples/retail/job_python.yaml").read_text()
        slow = self.write("slow.py", SLOW)
        for old, new in (("name: retail_python", "name: billing"),
                         ("transactions: 500", f"transactions: {ROWS_PER_ITEM}"),
                         ("[python3, bill.py]", f"[python3, {slow}, {self.begun}, {self.hurry}]")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        self.answer("job", "apply", self.write("billing.yaml", text))

    def notes(self):
        """Returns (instance, item, attempt) of each begin."""
        return [line.split() for line in self.begun.read_text().splitlines()]

    def await_work(self, replicas):
        """Waits until each replica has begun an item."""
        end = time.monotonic() + READY_SECONDS
        while not set(replicas) <= {note[0] for note in self.notes()}:
            self.assertLess(time.monotonic(), end, "a replica got no work")
            time.sleep(0.01)

    def scale_in_once_each(self):
        """Scales from REPLICAS to one in single steps, while each replica has work."""
        self.agent.order(REPLICAS)
        replicas = self.agent.await_replicas(
            lambda seen: sum(state == "ready" for state in seen.values()) == REPLICAS)
        ready = sorted(name for name, state in replicas.items() if state == "ready")
        self.await_work(ready)
        for left in range(REPLICAS - 1, 0, -1):
            self.agent.order(left, ready.pop())
        return REPLICAS - 1

    def test_a_hundred_scale_ins_redeliver_nothing(self):
        data = retail_input(ROWS)
        self.apply_slow_billing()
        self.agent.order(1)
        # The job has no handler until a processor works for it.
        self.agent.await_replicas(lambda seen: "ready" in seen.values())
        submit = self.start_submit("billing", data)
        scale_ins = 0
        while scale_ins < SCALE_INS:
            scale_ins += self.scale_in_once_each()
        begun = len(self.notes())
        self.assertLess(begun, ROWS // ROWS_PER_ITEM, "the batch was over before the last scale-in")
        self.agent.await_replicas(lambda seen: len(seen) == 1)
        self.hurry.touch()
        out, errors = submit.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submit.returncode, 0, errors)
        notes = self.notes()
        again = [note for note in notes if note[2] != "1"]
        twice = {item: times for item, times in collections.Counter(
            note[1] for note in notes).items() if times > 1}
        print(f"{scale_ins} scale-ins of {len({note[0] for note in notes})} processors during "
              f"{begun} items; redelivered: {len(again)}, begun twice: {len(twice)}")
        self.assertEqual((again, twice), ([], {}))
        self.assertEqual(len(notes), ROWS // ROWS_PER_ITEM)
        self.assert_exact(data, ROWS, json.loads(out))


if __name__ == "__main__":
    harness.main()
