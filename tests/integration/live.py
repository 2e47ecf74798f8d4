# SPDX-License-Identifier: Apache-2.0
"""A mesh whose processors a scaling agent starts and stops, and observers of it.

Bills like the retail job, but takes a given time for each item, with one thread for each processor:
so the speed of a replica is known beforehand, and is the same on each machine. The handler records
the begin of each item, so an item that begins twice is visible.
"""

import collections
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import threading
import time

from harness import ROOT
from mesh import Mesh
from scaling_agent_test import Agent, AgentMesh, v1

ROWS_PER_ITEM = 5
LOOK_SECONDS = 0.05

# The program notes which replica has started it.
os.environ.setdefault("MUSTER_HANDLER_ENV", "MUSTER_INSTANCE")

SLOW = f'''
import json, os, sys, time
sys.path.insert(0, {str(ROOT / "examples/retail")!r})
import bill

def slowed(lines):
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
    for line in lines:
        work = json.loads(line)
        note = [os.environ["MUSTER_INSTANCE"], work["item"].split(":")[0], str(work["attempt"])]
        os.write(log, (" ".join(note) + "\\n").encode())
        time.sleep(float(sys.argv[2]))
        yield line

sys.stdin = slowed(sys.stdin)
bill.main()
'''

RULES = """mode: act
targets:
  billing: {{kind: process, name: muster-processor, queues: [billing-in], sla: {{max: {sla}s}}, max: {most}}}
"""


def slow_billing(begun, item_seconds, slow, name="billing"):
    """Returns the job; writes its handler's program to `slow`, which records its begins in `begun`."""
    slow.write_text(SLOW)
    begun.touch()
    text = (ROOT / "examples/retail/job_python.yaml").read_text()
    for old, new in (("name: retail_python", f"name: {name}"),
                     ("transactions: 500", f"transactions: {ROWS_PER_ITEM}"),
                     ("[python3, bill.py]", f"[python3, {slow}, {begun}, '{item_seconds}']")):
        assert old in text, old
        text = text.replace(old, new)
    return text


def seconds_of(text):
    """Returns the seconds of a time such as 2026-01-02T06:01:00.040Z."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def seconds(stamp):
    return stamp.ToNanoseconds() / 1e9


class ReplicaWatch:
    """Counts the replicas of a state folder during a `with` block."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / "replicas"

    def keepers(self):
        """Returns the pids of the replicas' keepers, by the replicas' names."""
        living = {}
        for record in self.folder.glob("*/record"):
            # A replica may go at any moment.
            with contextlib.suppress(OSError, ValueError):
                about = json.loads(record.read_text())
                if (record.parent / "end").exists():
                    continue
                os.kill(about["pid"], 0)
                living[about["instance"]] = about["pid"]
        return living

    def look(self):
        before = time.monotonic()
        while not self.ended.wait(LOOK_SECONDS):
            now, living = time.monotonic(), len(self.keepers())
            self.replica_seconds += living * (now - before)
            self.most, before = max(self.most, living), now

    def leaving(self):
        """Returns the replicas that were told to leave."""
        return {mark.parent.name for mark in self.folder.glob("*/leaving")}

    def __enter__(self):
        self.most = 0
        self.replica_seconds = 0.0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


class LiveAgent(Agent):
    """An agent that starts and stops processors of this host."""

    def __init__(self, mesh, rules, folder, *more, processor_arguments="--threads 1",
                 processor=os.environ["MUSTER_PROCESSOR_PROGRAM"]):
        self.replicas = ReplicaWatch(folder / "replicas")
        super().__init__(mesh, rules, "--data-dir", folder, "--processor-program",
                         processor, "--replica-keeper", os.environ["MUSTER_KEEPER_PROGRAM"],
                         "--processor-args", processor_arguments, *more, actuator="process")


@dataclasses.dataclass
class Burst:
    """The observations of a batch and of the agent's reaction to it."""

    batch: dict  # as `muster batch get` prints it
    begun: float  # when the submit began
    decisions: list  # since then, oldest first
    most_replicas: int
    replica_seconds: float

    @property
    def took(self):
        return seconds_of(self.batch["completed"]) - self.begun

    @property
    def growths(self):
        """The orders for more replicas."""
        return [decision for decision in self.decisions
                if decision.action.after > decision.action.before and decision.action.state in
                (v1.ScalingAction.STATE_DONE, v1.ScalingAction.STATE_ORDERED)]

    @property
    def shrinks(self):
        return [decision for decision in self.decisions
                if decision.action.after < decision.action.before and decision.action.state in
                (v1.ScalingAction.STATE_DONE, v1.ScalingAction.STATE_ORDERED)]

    def tell(self):
        """Returns the decisions as text for people."""
        return "\n".join(
            f"{seconds(decision.decided) - self.begun:7.2f} s  {decision.id} {decision.action.before}"
            f" -> {decision.action.after} {decision.binding}: {decision.explanation}"
            for decision in self.decisions)


def notes(begun):
    """Returns (replica, item, attempt) of each begin."""
    return [line.split() for line in begun.read_text().splitlines()]


def workers(begun):
    """Returns the replicas that have begun an item."""
    return {replica for replica, _, _ in notes(begun)}


def redelivered(begun):
    """Returns (attempts beyond the first, items begun twice), from the handler's own notes."""
    times = collections.Counter(item for _, item, _ in notes(begun))
    return (sum(attempt != "1" for _, _, attempt in notes(begun)),
            sum(count > 1 for count in times.values()))
