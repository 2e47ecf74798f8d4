# SPDX-License-Identifier: Apache-2.0
"""What the gateway does beyond Azure's contract, from the outside: gets that wait for a message, poison
queues, and puts that are stored once; also when the gateway is killed."""

import contextlib
import http.client
import json
import pathlib
import random
import signal
import tempfile
import threading
import time
import unittest

import gateway
from gateway import Client, Gateway, GatewayTest, message

WAITERS = 300


def metadata(**values):
    return {f"x-ms-meta-muster-{name.replace('_', '-')}": str(value)
            for name, value in values.items()}


class Waiter(threading.Thread):
    """One get, on a connection of its own."""

    def __init__(self, address, path):
        super().__init__()
        self.client = Client(address)
        self.path = path
        self.reply = None

    def run(self):
        with contextlib.closing(self.client):
            self.reply = self.client.ask("GET", self.path)

    @property
    def texts(self):
        return [m["MessageText"] for m in self.reply.messages()]


class LongPollTest(GatewayTest):

    def waiting(self, count, path):
        waiters = [Waiter(self.gateway.address, path) for _ in range(count)]
        for waiter in waiters:
            waiter.start()
        return waiters

    def test_holds_an_empty_get_until_a_message_comes(self):
        self.assertEqual(self.said("PUT", "/polled", headers=metadata(longpoll=50)), "201")
        [waiter] = self.waiting(1, "/polled/messages")
        self.assertEqual(self.said("POST", "/polled/messages", message("hello")), "201")
        waiter.join()
        self.assertEqual(waiter.texts, ["hello"])

    def test_gives_each_message_to_one_of_many(self):
        self.assertEqual(self.said("PUT", "/crowded", headers=metadata(longpoll=50)), "201")
        waiters = self.waiting(WAITERS, "/crowded/messages")
        for number in range(WAITERS):
            self.assertEqual(self.said("POST", "/crowded/messages", message(str(number))), "201")
        for waiter in waiters:
            waiter.join()
        texts = sorted((text for waiter in waiters for text in waiter.texts), key=int)
        self.assertEqual(texts, [str(number) for number in range(WAITERS)])

    def test_answers_nothing_when_the_time_is_up(self):
        self.assertEqual(self.said("PUT", "/brief", headers=metadata(longpoll=1)), "201")
        reply = self.ask("GET", "/brief/messages")
        self.assertEqual((reply.said, reply.messages()), ("200", []))
        # The client's own time counts if it is shorter.
        self.assertEqual(self.said("PUT", "/brief?comp=metadata", headers=metadata(longpoll=50)),
                         "204")
        self.assertEqual(self.ask("GET", "/brief/messages?timeout=1").messages(), [])

    def test_wakes_when_a_lease_ends_and_when_a_message_is_given_back(self):
        self.assertEqual(self.said("PUT", "/leased", headers=metadata(longpoll=50)), "201")
        self.assertEqual(self.said("POST", "/leased/messages", message("a")), "201")
        self.ask("GET", "/leased/messages?visibilitytimeout=1")
        again = self.ask("GET", "/leased/messages").messages()[0]
        self.assertEqual((again["MessageText"], again["DequeueCount"]), ("a", "2"))
        [waiter] = self.waiting(1, "/leased/messages")
        self.assertEqual(self.said(
            "PUT", f"/leased/messages/{again['MessageId']}?popreceipt={again['PopReceipt']}"
            "&visibilitytimeout=0"), "204")
        waiter.join()
        self.assertEqual(waiter.texts, ["a"])


class DrainTest(unittest.TestCase):

    def test_answers_what_was_asked_and_says_that_the_connection_ends(self):
        """Without that, some clients send their next call on it, and see it cut off."""
        with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder, \
                contextlib.ExitStack() as stack:
            service = gateway.Service(folder)
            stack.callback(service.kill)
            running = service.start_gateway()

            def client():
                return stack.enter_context(contextlib.closing(Client(running.address)))
            self.assertEqual(
                client().ask("PUT", "/polled", headers=metadata(longpoll=50)).said, "201")
            path = f"/{gateway.ACCOUNT}/polled/messages"
            waiting = [client().connection for _ in range(8)]
            for connection in waiting:
                connection.request("GET", path, headers=gateway.signed_headers("GET", path))
            # Connections are accepted in their order.
            self.assertEqual(client().ask("GET", "/polled?comp=metadata").said, "200")
            self.assertEqual(running.stop(), 0)
            for connection in waiting:
                reply = connection.getresponse()
                self.assertEqual((reply.status, reply.headers["Connection"]), (200, "close"))
                self.assertIn(b"<QueueMessagesList/>", reply.read())


@unittest.skipUnless(gateway.ON_NATS, "the embedded engine heeds all of them")
class RefusedSettingsTest(GatewayTest):

    def test_says_which_settings_the_engine_cannot_heed(self):
        for setting in ({"maxdequeue": 1}, {"dedup": 60}):
            [name] = setting
            with self.subTest(name):
                refused = self.ask("PUT", "/settings", headers=metadata(**setting))
                self.assertEqual(refused.said, "400 InvalidMetadata")
                self.assertEqual(refused.all("Reason"), [f"the engine jetstream has no muster-{name}"])
        self.assertEqual(self.said("GET", "/settings?comp=metadata"), "404 QueueNotFound")


@unittest.skipIf(gateway.ON_NATS, "only the embedded engine")
class PoisonTest(unittest.TestCase):

    def test_moves_each_poison_message_once_however_often_it_is_killed(self):
        """Messages that are received once too often are in the poison queue once, or still in their own."""
        with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
            data = pathlib.Path(folder) / "data"
            running = Gateway(data)
            texts = [str(number) for number in range(60)]
            with contextlib.closing(Client(running.address)) as client:
                self.assertEqual(
                    client.ask("PUT", "/work", headers=metadata(maxdequeue=1)).said, "201")
                for text in texts:
                    self.assertEqual(client.ask("POST", "/work/messages", message(text)).said, "201")
                seen = 0
                while seen < len(texts):
                    seen += len(client.ask("GET", "/work/messages?numofmessages=32"
                                           "&visibilitytimeout=1").messages())
            for _ in range(3):
                self.kill_while_it_moves(running)
                running = Gateway(data)
            with contextlib.closing(Client(running.address)) as client:
                deadline = time.monotonic() + gateway.TIMEOUT_SECONDS
                while self.stats(client)["poison_queue"]["messages"] < len(texts):
                    self.assertLess(time.monotonic(), deadline)
                    self.assertEqual(client.ask("GET", "/work/messages").messages(), [])
                self.assertEqual(self.stats(client)["ready"], 0)
                self.assertEqual(self.poison(client), sorted(texts))
            self.assertEqual(running.stop(), 0)

    def test_has_moved_a_message_once_when_it_dies_right_after(self):
        with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
            data = pathlib.Path(folder) / "data"
            running = Gateway(data, failpoint="queue.after_move")
            with contextlib.closing(Client(running.address)) as client:
                client.ask("PUT", "/work", headers=metadata(maxdequeue=1))
                client.ask("POST", "/work/messages", message("x"))
                self.assertEqual(len(client.ask("GET", "/work/messages"
                                                "?visibilitytimeout=1").messages()), 1)
                with self.assertRaises((OSError, http.client.HTTPException)):
                    while True:  # until the lease has ended
                        client.ask("GET", "/work/messages?visibilitytimeout=1")
            self.assertEqual(running.wait(), -signal.SIGKILL)
            running = Gateway(data)
            with contextlib.closing(Client(running.address)) as client:
                self.assertEqual(client.ask("GET", "/work/messages").messages(), [])
                self.assertEqual(self.poison(client), ["x"])
            self.assertEqual(running.stop(), 0)

    def kill_while_it_moves(self, running):
        """Kills it beside a client that gets, after a random number of replies."""
        left = random.randrange(1, 6)
        asked = threading.Semaphore(0)

        def ask():
            with contextlib.closing(Client(running.address)) as client:
                try:
                    while True:
                        client.ask("GET", "/work/messages?visibilitytimeout=1")
                        asked.release()
                except Exception as error:  # it was killed
                    if not isinstance(error, OSError) and type(error).__module__ != "http.client":
                        raise

        asker = threading.Thread(target=ask)
        asker.start()
        for _ in range(left):
            asked.acquire()
        running.kill()
        asker.join()

    def stats(self, client):
        return json.loads(client.ask("GET", "/work?comp=muster-stats").body)

    def poison(self, client):
        texts, marker = [], ""
        while True:
            page = json.loads(client.ask(
                "GET", f"/work-poison?comp=muster-poison&marker={marker}").body)
            if not page["messages"]:
                return sorted(texts)
            for one in page["messages"]:
                self.assertEqual(one["from_queue"], "work")
                self.assertIn("127.0.0.1", one["last_holder"])
                texts.append(one["message_text"])
            marker = page["next_marker"]


@unittest.skipIf(gateway.ON_NATS, "only the embedded engine")
class DedupTest(unittest.TestCase):

    def test_remembers_puts_when_it_is_killed(self):
        with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
            data = pathlib.Path(folder) / "data"
            running = Gateway(data)
            with contextlib.closing(Client(running.address)) as client:
                self.assertEqual(
                    client.ask("PUT", "/once", headers=metadata(dedup=600)).said, "201")
                first = client.ask("POST", "/once/messages", message("a")).body
            running.kill()
            running = Gateway(data)
            with contextlib.closing(Client(running.address)) as client:
                self.assertEqual(client.ask("POST", "/once/messages", message("a")).body, first)
                self.assertEqual(client.ask("POST", "/once/messages", message("b")).said, "201")
                got = client.ask("GET", "/once/messages?numofmessages=32").messages()
                self.assertEqual([m["MessageText"] for m in got], ["a", "b"])
            self.assertEqual(running.stop(), 0)


if __name__ == "__main__":
    unittest.main()
