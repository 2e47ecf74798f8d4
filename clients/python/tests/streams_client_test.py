# SPDX-License-Identifier: Apache-2.0
"""Event streams by the package, on a mesh of real programs."""

import collections
import pathlib
import subprocess
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "tests/integration"))

import muster
from mesh_case import MeshTest

PARTITIONS = 4
INTERVAL = 0.5

# A process that says what it handles, and saves a checkpoint of every fifth event.
VICTIM = f"""
import sys
import muster

def handle(partition, event):
    line = "%d %d\\n" % (partition.partition, event.offset)  # lines of threads must not mix
    sys.stdout.write(line)
    sys.stdout.flush()
    if event.offset % 5 == 0:
        partition.update_checkpoint(event)

with muster.EventProcessor(sys.argv[1], "homes", "store", interval={INTERVAL}) as processor:
    processor.run(handle)
"""


class Board:
    """What all members have handled."""

    def __init__(self):
        self.changed = threading.Condition()
        self.seen = collections.Counter()

    def note(self, partition, offset):
        with self.changed:
            self.seen[partition, offset] += 1
            self.changed.notify_all()

    def await_that(self, done):
        with self.changed:
            if not self.changed.wait_for(lambda: done(self.seen), 60):
                raise AssertionError(f"only {len(self.seen)} events were handled")


class StreamsClientTest(MeshTest):
    def setUp(self):
        super().setUp()
        made = self.muster("stream", "create", "homes", "--partitions", str(PARTITIONS), "--server",
                           self.mesh.server)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.board = Board()
        self.producer = muster.EventProducer(self.mesh.server, "homes")
        self.addCleanup(self.producer.close)

    def send(self, count):
        places = self.producer.send_many((f"home-{number}", f"reading {number}")
                                         for number in range(count))
        self.assertEqual(len(places), count)
        return {(place.partition, place.offset) for place in places}

    def process(self, on_event, **handlers):
        """A member in this process; what `run` raised is in the list that comes with it."""
        processor = muster.EventProcessor(self.mesh.server, "homes", "store", interval=INTERVAL)
        raised = []

        def run():
            try:
                processor.run(on_event, **handlers)
            except muster.MusterError as error:
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()

        def end():
            processor.stop()
            thread.join()
            processor.close()
            return raised

        self.addCleanup(end)
        return end

    def start_victim(self):
        victim = subprocess.Popen([sys.executable, "-c", VICTIM, self.mesh.server],
                                  stdout=subprocess.PIPE, text=True)

        def hear():
            for line in victim.stdout:
                self.board.note(*map(int, line.split()))

        hears = threading.Thread(target=hear)
        hears.start()

        def kill():
            victim.kill()
            victim.wait()
            hears.join()
            victim.stdout.close()

        self.addCleanup(kill)
        return kill

    def test_the_partitions_of_a_killed_process_go_to_another(self):
        sent = self.send(200)
        kill = self.start_victim()
        self.board.await_that(lambda seen: sent <= set(seen))
        opened = []
        here = collections.Counter()

        def handle(partition, event):
            self.board.note(partition.partition, event.offset)
            here[partition.partition] += 1
            partition.update_checkpoint(event)

        end = self.process(handle, on_partition_initializing=opened.append)
        sent |= self.send(200)
        self.board.await_that(lambda seen: sent <= set(seen))
        kill()
        sent |= self.send(200)
        self.board.await_that(lambda seen: sent <= set(seen) and len(here) == PARTITIONS)
        self.assertEqual({context.partition for context in opened}, set(range(PARTITIONS)))
        self.assertEqual(end(), [])

    def test_an_event_that_fails_comes_again_and_the_next_member_goes_on_behind_the_checkpoint(self):
        place = self.producer.send(b"\xff", key="home-1", properties={"kind": "door"})
        errors = []
        reasons = []

        def handle(partition, event):
            if not errors:
                raise ValueError("not yet")
            self.assertEqual((event.key, event.body, event.properties),
                             (b"home-1", b"\xff", {"kind": b"door"}))
            partition.update_checkpoint(event)
            self.board.note(partition.partition, event.offset)

        end = self.process(handle, on_error=errors.append,
                           on_partition_closing=lambda context, reason: reasons.append(reason))
        self.board.await_that(lambda seen: seen[place.partition, place.offset] == 1)
        self.assertEqual(end(), [])
        self.assertEqual([error.operation for error in errors], ["handle"])
        self.assertEqual(set(reasons), {"shutdown"})
        after = self.producer.send("next", partition=place.partition)
        self.process(lambda partition, event: self.board.note(partition.partition, event.offset))
        self.board.await_that(lambda seen: seen[after.partition, after.offset] == 1)
        self.assertEqual(self.board.seen[place.partition, place.offset], 1)

    def test_a_stream_that_is_not_there_is_an_error(self):
        with muster.EventProcessor(self.mesh.server, "none", "store") as processor:
            with self.assertRaises(muster.NotFound):
                processor.run(print)
        with muster.EventProducer(self.mesh.server, "none") as producer:
            with self.assertRaises(muster.NotFound):
                producer.send("x")


if __name__ == "__main__":
    unittest.main(verbosity=2)
