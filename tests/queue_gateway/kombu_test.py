# SPDX-License-Identifier: Apache-2.0
"""What Celery does with a queue, by kombu and its transport for Azure's queues, unmodified: a task is produced,
consumed and gone, those that wait are counted, and a purge takes them away. MUSTER_AZURE_CLIENTS has a Python with
kombu."""

import os
import pathlib
import sys
import unittest

PYTHON = pathlib.Path(os.environ.get("MUSTER_AZURE_CLIENTS", "/nonexistent")) / "kombu" / "bin" / "python"
if PYTHON.exists():
    os.environ["MUSTER_AZURE_PYTHON"] = str(PYTHON)

import gateway  # noqa: E402: after the Python is chosen

gateway.run_by_the_python_of_azure()
try:
    import kombu
    from azure.storage.queue import QueueServiceClient
except ImportError as missing:
    print(f"skipped: {missing}", file=sys.stderr)
    sys.exit(gateway.SKIPPED)

TASKS = 20


class KombuTest(gateway.GatewayTest):

    def connect(self):
        connection = kombu.Connection(f"azurestoragequeues://{gateway.KEY}@{self.gateway.url()}")
        self.addCleanup(connection.release)
        return connection

    def test_is_of_the_version_that_the_documentation_names(self):
        root = pathlib.Path(__file__).parents[2]
        self.assertTrue(f"| `kombu` {kombu.__version__}" in (root / "docs" / "queue_api.md").read_text())
        self.assertTrue(f"kombu=={kombu.__version__}" in (root / "scripts/lib/azure_clients.sh").read_text())

    def test_carries_tasks_from_a_producer_to_a_worker(self):
        queue = kombu.Queue("celery_tasks", kombu.Exchange("celery_tasks"), routing_key="celery_tasks")
        with self.connect() as connection:
            producer = connection.Producer()
            for number in range(TASKS):
                producer.publish({"task": "add", "number": number, "text": "h\u00e9 <&>"}, exchange=queue.exchange,
                                 routing_key=queue.routing_key, declare=[queue], serializer="json")
        done = []

        def work(body, message):
            done.append(body)
            message.ack()

        with self.connect() as connection, connection.Consumer(queue, callbacks=[work]):
            while len(done) < TASKS:
                connection.drain_events(timeout=gateway.TIMEOUT_SECONDS)
        self.assertEqual(sorted(body["number"] for body in done), list(range(TASKS)))
        self.assertEqual({body["text"] for body in done}, {"h\u00e9 <&>"})
        self.assertEqual(self.ask("GET", "/celery-tasks?comp=metadata").headers["x-ms-approximate-messages-count"], "0")

    def test_counts_and_purges_what_waits(self):
        with self.connect() as connection:
            waiting = connection.SimpleQueue("waiting")
            for number in range(3):
                waiting.put(number)
            self.assertEqual(waiting.qsize(), 3)
            self.assertEqual(waiting.get(timeout=gateway.TIMEOUT_SECONDS).payload, 0)
            self.assertEqual(waiting.clear(), 2)
            self.assertEqual(waiting.qsize(), 0)
            waiting.close()

    def test_finds_its_queues_among_many(self):
        """Each channel lists all queues of the account, in pages."""
        service = QueueServiceClient.from_connection_string(self.gateway.connection_string(), retry_total=0)
        self.addCleanup(service.close)
        for number in range(30):
            service.create_queue(f"other-{number}")
        with self.connect() as connection:
            connection.SimpleQueue("other-29").put("x")
        self.assertEqual(service.get_queue_client("other-29").receive_message().dequeue_count, 1)

    def test_is_refused_a_name_with_capitals(self):
        """kombu makes dashes of what a name may not have, and keeps its capitals."""
        with self.connect() as connection, self.assertRaises(Exception) as raised:
            connection.SimpleQueue("Task_Q").put("x")
        self.assertIn("InvalidResourceName", str(raised.exception))


if __name__ == "__main__":
    unittest.main()
