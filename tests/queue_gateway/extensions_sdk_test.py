# SPDX-License-Identifier: Apache-2.0
"""What the gateway does beyond Azure's contract, by the unmodified SDK: visibility timeouts that fit the work,
as the paper of Azure Storage has them, poison queues and puts that are stored once."""

import sys
import unittest

import gateway

gateway.run_by_the_python_of_azure()
try:
    from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
    from azure.storage.queue import QueueServiceClient
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(gateway.SKIPPED)

LEASE_SECONDS = 2


class AdaptiveTest(gateway.GatewayTest):
    """A worker takes a message with a short timeout and extends it while it works. Its message does not come
    twice, and that of a worker that died comes again soon."""

    def setUp(self):
        self.service = QueueServiceClient.from_connection_string(
            self.gateway.connection_string(), retry_total=0)
        self.addCleanup(self.service.close)
        # The second worker's get waits for what becomes visible: it tells when that happens.
        self.queue = self.service.create_queue(
            self._testMethodName.replace("_", "-")[:63].rstrip("-"),
            metadata={"muster-longpoll": "50"})

    def receive(self, **named):
        return self.queue.receive_message(**named)

    def test_a_slow_worker_that_extends_its_lease_keeps_its_message(self):
        self.queue.send_message("long work")
        held = self.receive(visibility_timeout=LEASE_SECONDS)
        receipts = {held.pop_receipt}
        # Works for three times its lease; the other worker waits for as long, and gets nothing.
        for _ in range(6):
            self.assertIsNone(self.receive(timeout=LEASE_SECONDS // 2))
            held = self.queue.update_message(held, visibility_timeout=LEASE_SECONDS)
            receipts.add(held.pop_receipt)
        self.assertEqual(len(receipts), 1 if gateway.ON_NATS else 7, "of the get, and of each extension")
        self.queue.delete_message(held)
        self.assertIsNone(self.receive(timeout=LEASE_SECONDS + 1))

    def test_the_message_of_a_dead_worker_comes_again_soon(self):
        self.queue.send_message("work")
        dead = self.receive(visibility_timeout=LEASE_SECONDS)
        self.assertEqual(dead.dequeue_count, 1)
        other = self.receive(visibility_timeout=60)
        self.assertEqual((other.content, other.dequeue_count), ("work", 2))
        self.assertEqual(other.id, dead.id)
        self.queue.delete_message(other)
        self.assertIsNone(self.receive(timeout=1))

    @unittest.skipIf(gateway.ON_NATS, "a NATS server cannot tell")
    def test_a_worker_that_was_taken_for_dead_cannot_touch_what_is_another_ones(self):
        self.queue.send_message("work")
        dead = self.receive(visibility_timeout=1)
        other = self.receive(visibility_timeout=60)
        for late in (lambda: self.queue.update_message(dead, visibility_timeout=60),
                     lambda: self.queue.delete_message(dead)):
            with self.assertRaises(HttpResponseError) as raised:
                late()
            self.assertEqual(raised.exception.status_code, 400)
        self.queue.delete_message(other)
        with self.assertRaises(ResourceNotFoundError):
            self.queue.delete_message(other)

    @unittest.skipIf(gateway.ON_NATS, "a NATS server cannot tell")
    def test_the_earlier_receipts_of_a_holder_are_stale(self):
        self.queue.send_message("work")
        first = self.receive(visibility_timeout=60)
        second = self.queue.update_message(first, visibility_timeout=60, content="half done")
        with self.assertRaises(HttpResponseError):
            self.queue.delete_message(first.id, first.pop_receipt)
        third = self.queue.update_message(second, visibility_timeout=0)
        # An extension does not count as a receive; what was noted in the text is there.
        again = self.receive(visibility_timeout=60)
        self.assertEqual((again.content, again.dequeue_count), ("half done", 2))
        with self.assertRaises(HttpResponseError):
            self.queue.delete_message(third.id, third.pop_receipt)


class SettingsTest(gateway.GatewayTest):

    def setUp(self):
        self.service = QueueServiceClient.from_connection_string(
            self.gateway.connection_string(), retry_total=0)
        self.addCleanup(self.service.close)

    @unittest.skipIf(gateway.ON_NATS, "only the embedded engine")
    def test_a_message_that_fails_each_time_ends_in_the_poison_queue(self):
        queue = self.service.create_queue("fragile", metadata={"muster-maxdequeue": "2",
                                                               "muster-poison": "broken-ones"})
        queue.send_message("x")
        for count in (1, 2):
            held = queue.receive_message(visibility_timeout=60)
            self.assertEqual(held.dequeue_count, count)
            queue.update_message(held, visibility_timeout=0)
        self.assertIsNone(queue.receive_message())
        poison = self.service.get_queue_client("broken-ones").receive_message()
        self.assertEqual((poison.content, poison.dequeue_count), ("x", 1))

    @unittest.skipIf(gateway.ON_NATS, "only the embedded engine")
    def test_a_put_is_stored_once_by_its_text(self):
        queue = self.service.create_queue("once", metadata={"muster-dedup": "600"})
        first, again = queue.send_message("a"), queue.send_message("a")
        self.assertEqual((again.id, again.pop_receipt), (first.id, first.pop_receipt))
        self.assertEqual(queue.get_queue_properties().approximate_message_count, 1)

    @unittest.skipIf(gateway.ON_NATS, "only the embedded engine")
    def test_a_put_is_stored_once_by_its_request_id(self):
        queue = self.service.create_queue("once-by-id", metadata={"muster-dedup": "600",
                                                                  "muster-dedup-by": "request-id"})

        def named(request):
            request.http_request.headers["x-ms-client-request-id"] = "order-7"

        ids = {queue.send_message(text, raw_request_hook=named).id for text in ("a", "b")}
        self.assertEqual(len(ids), 1)
        queue.send_message("c", client_request_id="order-8")
        self.assertEqual([m.content for m in queue.peek_messages(32)], ["a", "c"])

    @unittest.skipUnless(gateway.ON_NATS, "the embedded engine can")
    def test_says_that_the_engine_cannot_heed_a_setting(self):
        for setting in ("muster-maxdequeue", "muster-dedup"):
            with self.assertRaises(HttpResponseError) as raised:
                self.service.create_queue("unheeded", metadata={setting: "2"})
            self.assertEqual(raised.exception.status_code, 400)
            self.assertIn(f"has no {setting}", str(raised.exception))

    def test_refuses_a_setting_that_is_none(self):
        with self.assertRaises(HttpResponseError) as raised:
            self.service.create_queue("slip", metadata={"muster-maxdequeu": "2"})
        self.assertEqual(raised.exception.status_code, 400)
        self.assertIn("not known", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
