# SPDX-License-Identifier: Apache-2.0
"""An event stream and the records of ownership on a cluster of three NATS servers, of which one dies while
events are appended and read."""

import json
import subprocess
import threading
import time

import harness
from harness import MUSTER
from mesh import NATS_SERVERS, READY_SECONDS
from mesh_case import MeshTest
from nats_wire import NatsWire

# Of the NATS server: of the partition, and of the records of ownership.
PARTITION, RECORDS = "EVENTS_muster_homes", "KV_muster"
EVENTS_BEFORE = 10
EVENTS = 40


class Appender(threading.Thread):
    """Appends the numbers from 0 on, one by one; a number whose outcome is not known again."""

    def __init__(self, server):
        super().__init__()
        self.server = server
        self.done = 0
        self.go_on = threading.Event()
        self.failed = []

    def run(self):
        for number in range(EVENTS):
            if number == EVENTS_BEFORE:
                self.go_on.wait()
            end = time.monotonic() + READY_SECONDS
            while (why := self.append(number)) is not None:
                if time.monotonic() > end:
                    self.failed.append(why)
                    return
            self.done = number + 1

    def append(self, number):
        done = subprocess.run([MUSTER, "stream", "append", "homes", "--key", "home", "--server", self.server],
                              input=f"{number}\n", capture_output=True, text=True,
                              timeout=harness.TIMEOUT_SECONDS)
        return None if done.returncode == 0 else done.stderr


class StreamClusterTest(MeshTest):
    nats_server = NATS_SERVERS[-1]
    nats_servers = 3

    def wire(self, number):
        wire = NatsWire(self.mesh.nats_addresses[number])
        self.addCleanup(wire.close)
        return wire

    def read(self, offset):
        """The numbers from `offset` on; while servers fail over, nothing."""
        done = self.ask("stream", "read", "homes/0", "--from", offset, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else []

    def await_true(self, reached, what):
        end = time.monotonic() + READY_SECONDS
        while not reached():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def owner(self):
        [row] = self.answer("partition", "list", "controller/local")
        return row

    def test_appends_reads_and_owners_go_on_when_the_server_that_leads_the_stream_dies(self):
        self.answer("stream", "create", "homes", "--partitions", 1)
        wire = self.wire(0)
        partition, records = (wire.api(f"STREAM.INFO.{name}") for name in (PARTITION, RECORDS))
        self.assertEqual([stream["config"]["num_replicas"] for stream in (partition, records)], [3, 3])
        before = self.owner()
        self.assertEqual(before["epoch"], 1)
        appender = Appender(self.mesh.server)
        appender.start()
        self.addCleanup(appender.join)
        self.addCleanup(appender.go_on.set)
        self.await_true(lambda: appender.done == EVENTS_BEFORE or appender.failed, "the first events")
        leader = partition["cluster"]["leader"]
        self.mesh.nats_cluster[int(leader.removeprefix("nats"))].kill()
        appender.go_on.set()
        events = []
        while len({event["body"] for event in events}) < EVENTS and not appender.failed:
            events += self.read(events[-1]["offset"] + 1 if events else 1)
        appender.join()
        self.assertEqual(appender.failed, [])
        # An append whose answer was lost comes twice.
        self.assertEqual([event["offset"] for event in events], list(range(1, len(events) + 1)))
        first = dict.fromkeys(int(event["body"]) for event in events)
        self.assertEqual(list(first), list(range(EVENTS)))
        # A checkpoint is a compare-and-set in the bucket.
        self.answer("partition", "replay", "homes/0", "--from", 7, "--group", "store")
        after = self.owner()
        self.assertEqual((after["owner"], after["state"]), (before["owner"], before["state"]))


if __name__ == "__main__":
    harness.main()
