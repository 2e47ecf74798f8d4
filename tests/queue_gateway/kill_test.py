# SPDX-License-Identifier: Apache-2.0
"""What the gateway has answered holds when it is killed, and with it its NATS server, if it has one: each
message of a 201 is there, and none that a 204 deleted comes back."""

import contextlib
import sys
import tempfile
import threading
import unittest

from gateway import Client, ON_NATS, Service, message

CLIENTS = 8
QUEUES = ["queue", "queue-1", "queue-2"]  # an engine writes what comes to several at a time together
KILLS = int(sys.argv.pop()) if len(sys.argv) > 1 else 5


class Producer(threading.Thread):
    """Puts and deletes until the gateway is gone, and notes what it was answered."""

    def __init__(self, address, name, enough):
        super().__init__()
        self.client = Client(address)
        self.name = name
        self.enough = enough
        self.put, self.deleted, self.unknown = set(), set(), set()

    def run(self):
        number = 0
        try:
            while True:
                text = f"{self.name}-{number}"
                queue = QUEUES[number // 2 % len(QUEUES)]
                it = (queue, text)
                number += 1
                self.unknown.add(it)  # until it is answered
                reply = self.client.ask("POST", f"/{queue}/messages", message(text))
                if ON_NATS and reply.status == 500:
                    break  # its server was killed; whether it has the message is unknown
                assert reply.status == 201, reply.said
                self.put.add(it)
                self.unknown.discard(it)
                if number % 2:
                    continue
                put = reply.messages()[0]
                self.unknown.add(it)
                reply = self.client.ask(
                    "DELETE", f"/{queue}/messages/{put['MessageId']}?popreceipt={put['PopReceipt']}")
                if ON_NATS and reply.status == 500:
                    break
                assert reply.status == 204, reply.said
                self.deleted.add(it)
                self.unknown.discard(it)
                if number >= 20:
                    self.enough.release()
        except OSError:
            pass  # it was killed
        except Exception as error:  # http.client has its own
            if type(error).__module__ != "http.client":
                raise
        finally:
            self.client.close()


class KillTest(unittest.TestCase):

    def test_keeps_what_it_has_answered(self):
        with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
            service = Service(folder)
            self.addCleanup(service.kill)
            running = service.start_gateway()
            with contextlib.closing(Client(running.address)) as client:
                for queue in QUEUES:
                    self.assertEqual(client.ask("PUT", f"/{queue}").status, 201)
            for kill in range(KILLS):
                enough = threading.Semaphore(0)
                producers = [Producer(running.address, f"{kill}-{i}", enough)
                             for i in range(CLIENTS)]
                for producer in producers:
                    producer.start()
                for _ in range(CLIENTS):
                    enough.acquire()
                if service.nats:
                    service.nats.kill()
                running.kill()
                for producer in producers:
                    producer.join()
                if service.nats:
                    service.nats.restart()
                running = service.start_gateway()
                with contextlib.closing(Client(running.address)) as client:
                    self.check(client, producers)
            self.assertEqual(running.stop(), 0)

    def check(self, client, producers):
        # Each with its queue, for none may come to another.
        there = {(queue, text) for queue in QUEUES for text in self.texts(client, queue)}
        for producer in producers:
            lost = producer.put - producer.deleted - producer.unknown - there
            self.assertEqual(lost, set(), "answered 201, and gone")
            if not ON_NATS:  # the death of a NATS server may undo a delete
                self.assertEqual(producer.deleted & there, set(), "answered 204, and back")
        for queue in QUEUES:
            self.assertEqual(client.ask("DELETE", f"/{queue}/messages").status, 204)

    def texts(self, client, queue):
        there = set()
        while True:
            reply = client.ask("GET", f"/{queue}/messages?numofmessages=32")
            self.assertEqual(reply.status, 200, reply.said)
            messages = reply.messages()
            if not messages:
                return there
            there.update(m["MessageText"] for m in messages)


if __name__ == "__main__":
    unittest.main()
