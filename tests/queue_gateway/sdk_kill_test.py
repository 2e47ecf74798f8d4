# SPDX-License-Identifier: Apache-2.0
"""A gateway that is killed while clients work, by Azure's own SDK for Python, unmodified: what was answered is there,
and what was deleted stays away. `sdk_kill_test.py N` kills N times instead of three; MUSTER_AZURE_PYTHON is a Python
that has the SDK. Over NATS the server lives on."""

import sys
import tempfile
import threading
import time
import unittest

import gateway

gateway.run_by_the_python_of_azure()
try:
    from azure.core.exceptions import AzureError, HttpResponseError
    from azure.storage.queue import QueueServiceClient
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(gateway.SKIPPED)

KILLS = int(sys.argv.pop()) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 3
PRODUCERS = 4
CONSUMERS = 4
ENOUGH = 25  # operations of each client between two kills
LEASE_SECONDS = 1
PATIENCE_SECONDS = 3  # of a get that finds nothing
# Of the one that finds nothing more: longer than any lease. Over NATS that of a get that dies halfway is the queue's.
LAST_PATIENCE_SECONDS = 40 if gateway.ON_NATS else PATIENCE_SECONDS


class Book:
    """What the clients were answered. Thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.put = set()
        self.seen = set()
        self.deleted = {}  # text: how often it had been received when it was deleted, and when that was answered
        self.unanswered = set()  # deletes, by worker and text: both outcomes are right
        self.wrong = []

    def receive(self, message, asked):
        """`asked`: when the client began to ask for it."""
        with self.lock:
            self.seen.add(message.content)
            if message.content not in self.deleted:
                return
            received, answered = self.deleted[message.content]
            # A receive makes all earlier receipts stale: what is deleted was never received after that. Over NATS
            # they stay good, and what counts is the time.
            if asked > answered if gateway.ON_NATS else message.dequeue_count > received:
                self.wrong.append(f"{message.content}: deleted, and received again")

    def note_put(self, text):
        with self.lock:
            self.put.add(text)

    def note_delete(self, worker, message):
        with self.lock:
            self.unanswered.add((worker, message.content))

    def note_answer(self, worker, message, deleted):
        with self.lock:
            self.unanswered.discard((worker, message.content))
            if deleted:
                self.deleted[message.content] = (message.dequeue_count or 0, time.monotonic())


class Worker(threading.Thread):
    """A client of its own, until the gateway is gone."""

    def __init__(self, running, book, name):
        super().__init__(name=name)
        self.queue = QueueServiceClient.from_connection_string(
            running.connection_string(), retry_total=0).get_queue_client("queue")
        self.book = book
        self.enough = threading.Semaphore(0)

    def run(self):
        with self.queue:
            try:
                while True:
                    self.work()
                    self.enough.release()
            except HttpResponseError as error:
                if error.status_code:  # an answer, and a wrong one
                    self.book.wrong.append(f"{self.name}: {error}")
            except AzureError:
                pass  # it was killed
            finally:
                self.enough.release(ENOUGH)

    def delete(self, message):
        self.book.note_delete(self.name, message)
        try:
            self.queue.delete_message(message.id, message.pop_receipt)
        except HttpResponseError as error:
            if error.status_code not in (400, 404):
                raise
            self.book.note_answer(self.name, message, deleted=False)  # another one has received it
        else:
            self.book.note_answer(self.name, message, deleted=True)


class Producer(Worker):
    """Deletes each third of its messages by the receipt of the put."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.number = 0

    def work(self):
        text = f"{self.name}-{self.number}"
        self.number += 1
        sent = self.queue.send_message(text)
        self.book.note_put(text)
        if self.number % 3 == 0:
            self.delete(sent)


class Consumer(Worker):
    """Deletes all but each fourth message that it receives."""

    def work(self):
        asked = time.monotonic()
        pages = self.queue.receive_messages(messages_per_page=4, visibility_timeout=LEASE_SECONDS).by_page()
        for i, message in enumerate(next(pages, [])):
            self.book.receive(message, asked)
            if i != 3:
                self.delete(message)


class SdkKillTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        self.addCleanup(folder.cleanup)
        self.service = gateway.Service(folder.name)
        self.addCleanup(self.service.kill)
        self.book = Book()

    def test_keeps_what_it_has_answered_to_the_sdk(self):
        began = time.monotonic()
        running = self.service.start_gateway()
        self.queue_of(running).create_queue(metadata={"muster-longpoll": str(PATIENCE_SECONDS)})
        for kill in range(KILLS):
            workers = [kind(running, self.book, f"{kind.__name__}-{kill}-{i}")
                       for kind, count in ((Producer, PRODUCERS), (Consumer, CONSUMERS)) for i in range(count)]
            for worker in workers:
                worker.start()
            for worker in workers:
                for _ in range(ENOUGH):
                    worker.enough.acquire()
            running.kill()
            for worker in workers:
                worker.join()
            self.assertEqual(self.book.wrong, [])
            running = self.service.start_gateway()
        self.check(running)
        self.assertEqual(running.stop(), 0)
        print(f"{KILLS} kills: {len(self.book.put)} messages put, {len(self.book.deleted)} deleted, "
              f"{len(self.book.unanswered)} deletes without an answer, {time.monotonic() - began:.1f} s",
              file=sys.stderr)

    def queue_of(self, running):
        client = QueueServiceClient.from_connection_string(
            running.connection_string(), retry_total=0).get_queue_client("queue")
        self.addCleanup(client.close)
        return client

    def check(self, running):
        queue = self.queue_of(running)
        queue.set_queue_metadata({"muster-longpoll": str(LAST_PATIENCE_SECONDS)})
        left = set()
        asked = time.monotonic()
        # A get waits until the leases of those that were killed are over.
        while page := list(next(queue.receive_messages(
                messages_per_page=32, visibility_timeout=600).by_page(), [])):
            for message in page:
                self.book.receive(message, asked)
                left.add(message.content)
        self.assertEqual(self.book.wrong, [])
        self.assertEqual(left & set(self.book.deleted), set(), "answered 204, and back")
        unknown = {text for _, text in self.book.unanswered}
        gone = self.book.put - left - set(self.book.deleted) - unknown
        self.assertEqual(gone, set(), "answered 201, and gone")
        self.assertGreater(len(self.book.deleted), 0)


if __name__ == "__main__":
    unittest.main()
