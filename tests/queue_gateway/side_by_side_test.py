# SPDX-License-Identifier: Apache-2.0
"""Two gateways on one NATS server serve the same queues: what one does the other one sees, and what one
gives the other one takes. And what becomes of them when a gateway or the server dies."""

import contextlib
import pathlib
from queue import Queue
import tempfile
import threading
import unittest

import gateway
from gateway import Client, message

ACL = ("<SignedIdentifiers><SignedIdentifier><Id>{}</Id><AccessPolicy/></SignedIdentifier>"
       "</SignedIdentifiers>")
CORS = ("<StorageServiceProperties><Cors><CorsRule><AllowedOrigins>{}</AllowedOrigins>"
        "<AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule></Cors>"
        "</StorageServiceProperties>")


def place_of(queue, got):
    return f"/{queue}/messages/{got['MessageId']}?popreceipt={got['PopReceipt']}"


class SideBySideTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        self.addCleanup(folder.cleanup)
        self.service = gateway.Service(pathlib.Path(folder.name))
        self.addCleanup(self.service.kill)
        self.one, self.other = self.client(), self.client()

    def client(self):
        client = Client(self.service.start_gateway().address)
        self.addCleanup(client.close)
        return client

    def said(self, client, *arguments, **named):
        return client.ask(*arguments, **named).said

    def test_share_queues_and_what_is_set_of_them(self):
        self.assertEqual(self.said(self.one, "PUT", "/shared", headers={"x-ms-meta-a": "1"}), "201")
        self.assertEqual(self.said(self.other, "PUT", "/shared"), "409 QueueAlreadyExists")
        seen = self.other.ask("GET", "/shared?comp=metadata")
        self.assertEqual(seen.headers["x-ms-meta-a"], "1")
        self.assertEqual(self.said(self.other, "PUT", "/shared?comp=metadata",
                                   headers={"x-ms-meta-b": "2"}), "204")
        seen = self.one.ask("GET", "/shared?comp=metadata").headers
        self.assertEqual((seen["x-ms-meta-a"], seen["x-ms-meta-b"]), (None, "2"))
        self.assertEqual(self.one.ask("GET", "/?comp=list").all("Name"), ["shared"])

        self.assertEqual(self.said(self.one, "PUT", "/shared?comp=acl", ACL.format("one")), "204")
        self.assertEqual(self.other.ask("GET", "/shared?comp=acl").all("Id"), ["one"])
        properties = "/?restype=service&comp=properties"
        self.assertEqual(self.said(self.other, "PUT", properties, CORS.format("http://page")), "202")
        self.assertEqual(self.one.ask("GET", properties).all("AllowedOrigins"), ["http://page"])

        # A queue of the same name is another one, and begins without an ACL.
        self.assertEqual(self.said(self.other, "DELETE", "/shared"), "204")
        self.assertEqual(self.said(self.one, "GET", "/shared?comp=metadata"), "404 QueueNotFound")
        self.assertEqual(self.said(self.one, "POST", "/shared/messages", message("x")),
                         "404 QueueNotFound")
        self.assertEqual(self.said(self.other, "PUT", "/shared"), "201")
        self.assertEqual(self.one.ask("GET", "/shared?comp=acl").all("Id"), [])

    def test_one_of_two_acls_that_are_set_at_once_holds(self):
        self.assertEqual(self.said(self.one, "PUT", "/acls"), "201")
        barrier = threading.Barrier(2)
        answers = []

        def set_acl(client, name):
            for _ in range(10):
                barrier.wait(gateway.TIMEOUT_SECONDS)
                answers.append(self.said(client, "PUT", "/acls?comp=acl", ACL.format(name)))
        threads = [threading.Thread(target=set_acl, args=pair)
                   for pair in [(self.one, "one"), (self.other, "other")]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, ["204"] * 20)
        ids = self.one.ask("GET", "/acls?comp=acl").all("Id")
        self.assertIn(ids, [["one"], ["other"]])
        self.assertEqual(self.other.ask("GET", "/acls?comp=acl").all("Id"), ids)

    def test_take_the_receipts_of_each_other(self):
        self.assertEqual(self.said(self.one, "PUT", "/receipts"), "201")
        put = self.one.ask("POST", "/receipts/messages", message("put")).messages()[0]
        self.assertEqual(self.said(self.other, "DELETE", place_of("receipts", put)), "204")

        self.one.ask("POST", "/receipts/messages", message("got"))
        got = self.other.ask("GET", "/receipts/messages?visibilitytimeout=600").messages()[0]
        self.assertEqual(got["MessageText"], "got")
        self.assertEqual(self.one.ask("GET", "/receipts/messages").messages(), [])
        kept = self.one.ask("PUT", place_of("receipts", got) + "&visibilitytimeout=900",
                            message("got"))
        self.assertEqual(kept.said, "204")
        got["PopReceipt"] = kept.headers["x-ms-popreceipt"]
        self.assertEqual(self.said(self.other, "PUT",
                                   place_of("receipts", got) + "&visibilitytimeout=0"), "204")
        again = self.one.ask("GET", "/receipts/messages").messages()[0]
        self.assertEqual((again["MessageId"], again["DequeueCount"]), (got["MessageId"], "2"))
        self.assertEqual(self.said(self.other, "DELETE", place_of("receipts", again)), "204")
        count = self.one.ask("GET", "/receipts?comp=metadata")
        self.assertEqual(count.headers["x-ms-approximate-messages-count"], "0")

    def test_a_put_at_one_ends_the_wait_of_a_get_at_the_other_one(self):
        self.assertEqual(self.said(self.one, "PUT", "/polled", headers={
            "x-ms-meta-muster-longpoll": "50"}), "201")
        rounds = 3
        got = Queue()

        def poll():
            with contextlib.closing(Client(self.service.gateways[1].address)) as client:
                for _ in range(rounds):
                    got.put([m["MessageText"] for m in client.ask("GET", "/polled/messages").messages()])
        poller = threading.Thread(target=poll)
        poller.start()
        # From the second round on, the get comes before its message. A wait that nothing ends is empty.
        for i in range(rounds):
            self.assertEqual(self.said(self.one, "POST", "/polled/messages", message(str(i))), "201")
            self.assertEqual(got.get(timeout=gateway.TIMEOUT_SECONDS), [str(i)])
        poller.join()

    def test_outlive_each_other(self):
        self.assertEqual(self.said(self.one, "PUT", "/outlived"), "201")
        for text in ["held", "waits"]:
            self.assertEqual(self.said(self.one, "POST", "/outlived/messages", message(text)), "201")
        held = self.one.ask("GET", "/outlived/messages?visibilitytimeout=600").messages()[0]
        self.service.gateways[0].kill()
        waiting = self.other.ask("GET", "/outlived/messages").messages()
        self.assertEqual([m["MessageText"] for m in waiting], ["waits"])
        self.assertEqual(self.said(self.other, "DELETE", place_of("outlived", held)), "204")
        with contextlib.closing(self.client()) as third:
            self.assertEqual(self.said(third, "DELETE", place_of("outlived", waiting[0])), "204")

    def test_wait_for_their_server(self):
        self.assertEqual(self.said(self.one, "PUT", "/waiting"), "201")
        running, server = self.service.gateways[0], self.service.nats
        server.kill()
        running.await_line("the NATS server does not answer")
        self.assertEqual(running.asked_for_health("/readyz"), (503, "without its NATS server"))
        self.assertEqual(running.asked_for_health("/healthz"), (200, "alive"))
        self.assertEqual(self.said(self.one, "POST", "/waiting/messages", message("lost")),
                         "500 OperationTimedOut")
        late = self.service.start_gateway(wait=False)
        self.assertEqual(late.asked_for_health("/readyz"), (503, "waiting for its stores"))
        server.restart()
        running.await_line("the NATS server is back")
        self.assertEqual(running.asked_for_health("/readyz"), (200, "ready"))
        self.assertEqual(self.said(self.one, "POST", "/waiting/messages", message("kept")), "201")
        late.await_ready()
        with contextlib.closing(Client(late.address)) as client:
            texts = [m["MessageText"]
                     for m in client.ask("GET", "/waiting/messages?numofmessages=32").messages()]
        self.assertIn("kept", texts)

    def test_ends_while_it_waits(self):
        self.service.nats.kill()
        waiting = self.service.start_gateway(wait=False)
        waiting.await_line("is asked until it answers")
        self.assertEqual(waiting.stop(), 0)


if __name__ == "__main__":
    unittest.main()
