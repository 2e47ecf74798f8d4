# SPDX-License-Identifier: Apache-2.0
"""Two readers race for the messages of one queue, are killed and started again, and so is the gateway: each message is
seen at least once, and one that was deleted never again. `racing_readers_test.py N` races for N messages."""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import selectors
import subprocess
import sys
import tempfile
import time
import unittest

import gateway
from gateway import Client, message
from pipelined_client import PipelinedClient, sas_of

MESSAGES = int(sys.argv.pop()) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 20_000
READERS = 2
READER_KILLS = 3 + MESSAGES // 50_000  # of each reader
GATEWAY_KILLS = 1 + MESSAGES // 200_000
LEASE_SECONDS = 3
# A get waits for so long before the queue counts as empty: longer than any lease.
PATIENCE_SECONDS = 5
PRODUCERS, AT_A_TIME = 64, 50
READER = pathlib.Path(__file__).with_name("racing_reader.py")
MESSAGE_ID = re.compile(rb"<MessageId>([^<]+)</MessageId>")


class Reader:
    """One of the racers, through all its lives."""

    def __init__(self, folder, number):
        self.folder, self.number = folder, number
        self.lives = 0
        self.deleted = 0
        self.process = None

    def start(self, address, sas):
        log = self.folder / f"reader-{self.number}-{self.lives}"
        self.lives += 1
        self.process = subprocess.Popen(
            [sys.executable, "-B", str(READER), address, "queue", sas, str(LEASE_SECONDS), str(log)],
            stdout=subprocess.PIPE)

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        """Its exit code."""
        self.process.stdout.close()
        return self.process.wait(gateway.TIMEOUT_SECONDS)


class RacingReadersTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.service = gateway.Service(self.folder)
        self.addCleanup(self.service.kill)
        self.running = self.service.start_gateway()
        self.sas = sas_of("queue")
        self.readers = [Reader(self.folder, i) for i in range(READERS)]
        self.addCleanup(lambda: [reader.kill() for reader in self.readers if reader.process])

    def put_all(self):
        """The number that is the text of each message, by the id that the put answered."""
        def put(numbers):
            put_by_one = {}
            with contextlib.closing(PipelinedClient(self.running.address, "queue", self.sas)) as client:
                for first in range(0, len(numbers), AT_A_TIME):
                    some = numbers[first:first + AT_A_TIME]
                    for number, (status, body) in zip(some, client.ask(
                            [client.request("POST", body=message(str(number))) for number in some])):
                        assert status == 201, f"{status} {body}"
                        put_by_one[MESSAGE_ID.search(body)[1].decode()] = number
            return put_by_one
        put_by_all = {}
        with concurrent.futures.ThreadPoolExecutor(PRODUCERS) as producers:
            for put_by_one in producers.map(put, (range(i, MESSAGES, PRODUCERS) for i in range(PRODUCERS))):
                put_by_all.update(put_by_one)
        self.assertEqual(len(put_by_all), MESSAGES)
        return put_by_all

    def start_readers(self, selector, readers):
        for reader in readers:
            reader.start(self.running.address, self.sas)
            selector.register(reader.process.stdout, selectors.EVENT_READ, reader)

    def kill_gateway(self, selector, racing):
        self.running.kill()
        for reader in racing:
            selector.unregister(reader.process.stdout)
            self.assertEqual(reader.end(), 3, "the reader says that the gateway is gone")
        self.running = self.service.start_gateway()
        self.start_readers(selector, racing)

    def race(self):
        """Until no reader finds anything. Kills come when a part of the messages is deleted."""
        reader_steps = {reader: MESSAGES // READERS // (READER_KILLS + 1) for reader in self.readers}
        gateway_step = MESSAGES // (GATEWAY_KILLS + 1)
        gateway_kills = 0
        racing = set(self.readers)
        with selectors.DefaultSelector() as selector:
            self.start_readers(selector, self.readers)
            while racing:
                for key, _ in selector.select(gateway.TIMEOUT_SECONDS):
                    reader = key.data
                    news = os.read(reader.process.stdout.fileno(), 65536)
                    reader.deleted += len(news)
                    if not news:
                        selector.unregister(reader.process.stdout)
                        self.assertEqual(reader.end(), 0)
                        racing.discard(reader)
                    elif reader.deleted >= reader_steps[reader] and reader.lives - gateway_kills <= READER_KILLS:
                        reader_steps[reader] += MESSAGES // READERS // (READER_KILLS + 1)
                        selector.unregister(reader.process.stdout)
                        reader.kill()
                        self.start_readers(selector, [reader])
                    elif sum(r.deleted for r in self.readers) >= gateway_step * (gateway_kills + 1) and \
                            gateway_kills < GATEWAY_KILLS:
                        gateway_kills += 1
                        self.kill_gateway(selector, racing)
                        break  # the other events are those of readers that ended
        self.assertEqual(gateway_kills, GATEWAY_KILLS)

    def check(self, put):
        """How often messages came again, and how many deletes were not answered."""
        seen, deleted, again = {}, {}, 0
        for log in self.folder.glob("reader-*"):
            with log.open() as lines:
                for line in lines:
                    kind, name, count, *text = line.split()
                    if kind == "S":
                        self.assertEqual(put.get(name), int(text[0]), f"{name} is not what was put")
                        again += name in seen
                        seen[name] = max(seen.get(name, 0), int(count))
                    else:
                        self.assertNotIn(name, deleted, "deleted twice")
                        deleted[name] = int(count)
        self.assertEqual(set(put) - set(seen), set(), "put, and never seen")
        # A receive makes all earlier receipts stale: what is deleted was never received after that.
        back = [name for name, count in deleted.items() if seen[name] > count]
        self.assertEqual(back, [], "deleted, and seen again")
        return again, len(put) - len(deleted)

    def test_sees_each_message_and_never_again_one_that_was_deleted(self):
        times = [time.monotonic()]
        with contextlib.closing(Client(self.running.address)) as client:
            self.assertEqual(client.ask("PUT", "/queue", headers={
                "x-ms-meta-muster-longpoll": str(PATIENCE_SECONDS)}).said, "201")
        put = self.put_all()
        times.append(time.monotonic())
        self.race()
        times.append(time.monotonic())
        again, unanswered = self.check(put)
        with contextlib.closing(Client(self.running.address)) as client:
            stats = json.loads(client.ask("GET", "/queue?comp=muster-stats").body)
        self.assertEqual((stats["ready"], stats["in_flight"], stats["delayed"]), (0, 0, 0))
        self.assertEqual(self.running.stop(), 0)
        lives = sum(reader.lives for reader in self.readers)
        print(f"{MESSAGES} messages put in {times[1] - times[0]:.1f} s, read and deleted in "
              f"{times[2] - times[1]:.1f} s by {lives} lives of {READERS} readers, {GATEWAY_KILLS} kills of the gateway; "
              f"{again} came again, {unanswered} deletes had no answer", file=sys.stderr)


if __name__ == "__main__":
    unittest.main()
