# SPDX-License-Identifier: Apache-2.0
"""A batch on a cluster of three NATS servers, which hand the lead of its queue over while items are given back."""

import contextlib
import json

import harness
from harness import looks
from mesh import NATS_SERVERS, READY_SECONDS
from mesh_case import MeshTest
from nats_wire import NatsWire

JOB = """
name: patient
input: {{format: lines}}
item: {{transactions: 5}}
handler: {{command: [python3, {program}]}}
# What a server forgets when it hands over comes again then.
queue: {{visibility: 10s}}
groups:
  - {{name: all, keys: [text], measures: {{lines: int}}}}
"""

# Gives each item back, once with a delay and once without, before it works on it.
PROGRAM = """
import json, sys
for line in sys.stdin:
    item = json.loads(line)
    attempt = item["attempt"]
    if attempt < 3:
        print(json.dumps({"item": item["item"], "outcome": "retry", "why": "not yet",
                          "after_ms": 300 * (attempt - 1)}), flush=True)
        continue
    rows = [{"text": transaction["fields"][0], "lines": 1} for transaction in item["transactions"]]
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups": {"all": rows}}), flush=True)
"""

CONSUMER = "MUSTER_local_patient-in-0.workers"
LINES = 300
MOVES = 8


class QueueClusterTest(MeshTest):
    nats_server = NATS_SERVERS[-1]
    nats_servers = 3

    def setUp(self):
        super().setUp()
        program = self.write("patient.py", PROGRAM)
        self.answer("job", "apply", self.write("job.yaml", JOB.format(program=program)))

    def leader(self):
        """Who leads the consumer of the queue of items; None: nobody at the moment."""
        with contextlib.closing(NatsWire(self.mesh.nats_addresses[0])) as wire:
            wire.socket.settimeout(1)
            try:
                return wire.api(f"CONSUMER.INFO.{CONSUMER}")["cluster"]["leader"]
            except (AssertionError, KeyError, TimeoutError):  # it is being elected
                return None

    def move_lead(self):
        """Has another server lead the consumer, and returns which."""
        before = self.leader()
        with contextlib.closing(NatsWire(self.mesh.nats_addresses[0])) as wire:
            wire.api(f"CONSUMER.LEADER.STEPDOWN.{CONSUMER}")
        for _ in looks(READY_SECONDS):
            if (leader := self.leader()) not in (None, before):
                return leader
        return self.fail("the lead does not move")

    def test_no_item_is_lost_or_counted_twice_while_the_lead_of_its_consumer_moves(self):
        data = self.write("in.txt", "".join(f"line {number}\n" for number in range(LINES)))
        submission = self.start_submit("patient", data)
        self.await_batch(1, lambda batch: batch["items_counted"] > 0)
        leaders = [self.move_lead() for _ in range(MOVES)]
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, 0, errors)
        done = json.loads(out)
        self.assertGreater(len(set(leaders)), 1)
        self.assertEqual((done["complete"], done["aggregated"], done["dead_lettered"]), (True, LINES, 0))
        [group] = self.report(done["batch"])["groups"]
        self.assertEqual(sorted((row["text"], row["lines"]) for row in group["rows"]),
                         sorted((f"line {number}", "1") for number in range(LINES)))


if __name__ == "__main__":
    harness.main()
