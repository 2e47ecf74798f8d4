# SPDX-License-Identifier: Apache-2.0
"""Azure's own SDK for Python, unmodified, on every operation. MUSTER_AZURE_PYTHON is a Python that has it."""

import datetime
import socket
import sys
import unittest

import gateway

gateway.run_by_the_python_of_azure()
try:
    from azure.core.exceptions import HttpResponseError
    from azure.storage.queue import (
        AccessPolicy, AccountSasPermissions, BinaryBase64DecodePolicy, BinaryBase64EncodePolicy,
        CorsRule, Metrics, QueueAnalyticsLogging, QueueClient, QueueSasPermissions,
        QueueServiceClient, ResourceTypes, RetentionPolicy, TextBase64DecodePolicy,
        TextBase64EncodePolicy, generate_account_sas, generate_queue_sas)
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(gateway.SKIPPED)


def in_an_hour():
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)


class PythonSdkTest(gateway.GatewayTest):

    def setUp(self):
        self.service = QueueServiceClient.from_connection_string(
            self.gateway.connection_string(), retry_total=0)
        self.addCleanup(self.service.close)
        name = self._testMethodName.replace("_", "-")[:63].rstrip("-")
        self.queue = self.service.create_queue(name, metadata={"CamelCase": "Value"})

    def code_of(self, call, *arguments, **named):
        with self.assertRaises(HttpResponseError) as raised:
            call(*arguments, **named)
        code = raised.exception.error_code
        return f"{raised.exception.status_code} {getattr(code, 'value', code)}"

    def test_round_trips_any_text(self):
        texts = ["", "a", "h\u00e9 \U0001f600 \u6f22", " <&>\"' \t\n ", "x" * 65536,
                 "\U0001f600" * 16384]
        for text in texts:
            self.queue.send_message(text)
        self.assertEqual([m.content for m in self.queue.peek_messages(32)], texts)
        self.assertEqual([m.content for m in self.queue.receive_messages(messages_per_page=32)],
                         texts)
        self.assertEqual(self.code_of(self.queue.send_message, "x" * 65537),
                         "413 RequestBodyTooLarge")

    def test_round_trips_base64_both_ways(self):
        for encode, decode, content in [
                (TextBase64EncodePolicy(), TextBase64DecodePolicy(), "\U0001f600 text"),
                (BinaryBase64EncodePolicy(), BinaryBase64DecodePolicy(), bytes(range(256)))]:
            client = QueueClient.from_connection_string(
                self.gateway.connection_string(), self.queue.queue_name,
                message_encode_policy=encode, message_decode_policy=decode)
            with client:
                client.send_message(content)
                received = client.receive_message()
                self.assertEqual(received.content, content)
                client.delete_message(received)

    def test_passes_messages_on(self):
        """With any engine, as workers do."""
        sent = self.queue.send_message("one", time_to_live=-1)
        self.assertEqual(sent.expires_on.year, 9999)
        received = self.queue.receive_message(visibility_timeout=600)
        self.assertEqual((received.id, received.content, received.dequeue_count),
                         (sent.id, "one", 1))
        self.assertIsNone(self.queue.receive_message())
        # The SDK sends the text along.
        given_back = self.queue.update_message(received, visibility_timeout=0)
        again = self.queue.receive_message()
        self.assertEqual((again.id, again.dequeue_count), (given_back.id, 2))
        self.queue.delete_message(again)
        self.queue.send_message("two")
        self.queue.clear_messages()
        self.assertEqual(self.queue.get_queue_properties().approximate_message_count, 0)

    @unittest.skipIf(gateway.ON_NATS, "only the embedded engine")
    def test_works_on_messages(self):
        sent = self.queue.send_message("one", visibility_timeout=0, time_to_live=-1)
        self.assertEqual(sent.expires_on.year, 9999)
        updated = self.queue.update_message(sent, visibility_timeout=0, content="two")
        self.assertEqual(self.code_of(self.queue.delete_message, sent.id, sent.pop_receipt),
                         "400 PopReceiptMismatch")
        received = self.queue.receive_message(visibility_timeout=60)
        self.assertEqual((received.content, received.dequeue_count), ("two", 1))
        self.assertIsNone(self.queue.receive_message())
        self.assertEqual(self.code_of(self.queue.delete_message, updated.id, updated.pop_receipt),
                         "400 PopReceiptMismatch")
        self.queue.delete_message(received)
        self.assertEqual(self.code_of(self.queue.delete_message, received),
                         "404 MessageNotFound")
        self.queue.send_message("three")
        self.queue.clear_messages()
        self.assertEqual(self.queue.get_queue_properties().approximate_message_count, 0)
        self.assertEqual(self.code_of(self.queue.send_message, "x", time_to_live=0),
                         "400 InvalidQueryParameterValue")
        self.assertEqual(
            self.code_of(self.queue.send_message, "x", visibility_timeout=9, time_to_live=9),
            "400 OutOfRangeQueryParameterValue")

    def test_works_on_queues(self):
        self.assertEqual(self.queue.get_queue_properties().metadata, {"CamelCase": "Value"})
        self.queue.set_queue_metadata({"b": "2"})
        self.assertEqual(self.queue.get_queue_properties().metadata, {"b": "2"})
        self.assertEqual(self.code_of(self.queue.create_queue), "409 QueueAlreadyExists")
        self.queue.delete_queue()
        self.assertEqual(self.code_of(self.queue.get_queue_properties), "404 QueueNotFound")
        self.assertEqual(self.code_of(self.service.create_queue, "ab"), "400 OutOfRangeInput")
        self.assertEqual(self.code_of(self.service.create_queue, "Upper"),
                         "400 InvalidResourceName")

    def test_lists_queues_in_pages(self):
        names = [f"page-{i:02}" for i in range(7)]
        for name in names:
            self.service.create_queue(name, metadata={"n": name})
        pages = list(self.service.list_queues(
            name_starts_with="page-", include_metadata=True, results_per_page=3).by_page())
        listed = [list(page) for page in pages]
        self.assertEqual([[q.name for q in page] for page in listed],
                         [names[:3], names[3:6], names[6:]])
        self.assertEqual([q.metadata for page in listed for q in page],
                         [{"n": name} for name in names])

    @unittest.skipIf(gateway.ON_NATS, "thousands of streams are not what a NATS server is for")
    def test_lists_five_thousand_queues_and_one(self):
        names = [f"many-{i:04}" for i in range(5001)]

        gateway.create_queues(self.gateway.address, names)
        for page_size, sizes in [(None, [5000, 1]), (1000, [1000] * 5 + [1])]:
            pages = [list(page) for page in self.service.list_queues(
                name_starts_with="many-", results_per_page=page_size).by_page()]
            self.assertEqual([len(page) for page in pages], sizes)
            self.assertEqual([queue.name for page in pages for queue in page], names)

    def test_keeps_policies_and_follows_them(self):
        self.queue.set_queue_access_policy({"readers": AccessPolicy(
            permission=QueueSasPermissions(read=True), expiry=in_an_hour())})
        self.assertEqual(list(self.queue.get_queue_access_policy()), ["readers"])
        self.queue.send_message("for readers")
        sas = generate_queue_sas(gateway.ACCOUNT, self.queue.queue_name, gateway.KEY,
                                 policy_id="readers")
        with QueueClient(self.gateway.url(), self.queue.queue_name, sas, retry_total=0) as reader:
            self.assertEqual([m.content for m in reader.peek_messages()], ["for readers"])
            self.assertEqual(self.code_of(reader.send_message, "x"),
                             "403 AuthorizationPermissionMismatch")
            self.queue.set_queue_access_policy({})
            self.assertEqual(self.code_of(reader.peek_messages), "403 AuthenticationFailed")

    def test_lets_a_sas_do_what_it_says(self):
        sas = generate_queue_sas(gateway.ACCOUNT, self.queue.queue_name, gateway.KEY,
                                 permission=QueueSasPermissions(add=True, process=True),
                                 expiry=in_an_hour())
        with QueueClient(self.gateway.url(), self.queue.queue_name, sas, retry_total=0) as worker:
            worker.send_message("x")
            worker.delete_message(worker.receive_message())
            self.assertEqual(self.code_of(worker.peek_messages),
                             "403 AuthorizationPermissionMismatch")
        sas = generate_account_sas(gateway.ACCOUNT, gateway.KEY, ResourceTypes(service=True),
                                   AccountSasPermissions(list=True), in_an_hour())
        with QueueServiceClient(self.gateway.url(), sas, retry_total=0) as lister:
            self.assertIn(self.queue.queue_name, [q.name for q in lister.list_queues()])

    def test_keeps_service_properties(self):
        self.service.set_service_properties(
            analytics_logging=QueueAnalyticsLogging(
                read=True, write=True, delete=True,
                retention_policy=RetentionPolicy(enabled=True, days=5)),
            hour_metrics=Metrics(enabled=True, include_apis=True,
                                 retention_policy=RetentionPolicy(enabled=True, days=5)),
            cors=[CorsRule(["http://page"], ["GET"], max_age_in_seconds=5)])
        properties = self.service.get_service_properties()
        self.assertTrue(properties["analytics_logging"].read)
        self.assertEqual(properties["hour_metrics"].retention_policy.days, 5)
        self.assertEqual(properties["cors"][0].allowed_origins, "http://page")

    def test_gives_statistics_at_the_secondary_location(self):
        host = f"{self.gateway.address}/{gateway.ACCOUNT}-secondary"
        with QueueServiceClient(self.gateway.url(), gateway.KEY, secondary_hostname=host,
                                retry_total=0) as service:
            self.assertEqual(service.get_service_stats()["geo_replication"]["status"], "live")


class DevelopmentStorageTest(unittest.TestCase):

    def test_serves_the_development_storage_of_the_sdk(self):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", 10001))
            except OSError:
                self.skipTest("another program has port 10001")
        import tempfile
        with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
            service = gateway.Service(folder)
            self.addCleanup(service.kill)
            service.start_gateway(listen="127.0.0.1:10001")
            with QueueServiceClient.from_connection_string("UseDevelopmentStorage=true",
                                                           retry_total=0) as service:
                service.create_queue("development").send_message("x")
                self.assertEqual([q.name for q in service.list_queues()], ["development"])


if __name__ == "__main__":
    unittest.main()
