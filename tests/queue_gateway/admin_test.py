# SPDX-License-Identifier: Apache-2.0
"""What `muster queue` does with the queues of a running gateway. MUSTER names the command."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import unittest

import gateway
from gateway import ACCOUNT, Client, message
from mesh import free_ports

MUSTER = os.environ["MUSTER"]


def command(admin, *arguments):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("MUSTER_")}
    return subprocess.Popen(
        [MUSTER, "queue", *map(str, arguments), "--server", admin, "-o", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


class Waiter(threading.Thread):
    """A get from the queue `orders`."""

    def __init__(self, address):
        super().__init__()
        self.client = Client(address)
        self.texts = None

    def run(self):
        reply = self.client.ask("GET", "/orders/messages")
        self.client.close()
        self.texts = [found["MessageText"] for found in reply.messages()]


class Fixture(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.service = gateway.Service(self.folder)
        self.addCleanup(self.service.kill)

    def start(self, *arguments):
        self.gateway = self.service.start_gateway(
            "--metrics", "127.0.0.1:0", "--admin", "127.0.0.1:0", *arguments, wait=False)
        self.metrics = self.gateway.await_line(r"msg=metrics at=(\S+)/metrics")[1]
        self.admin = self.gateway.await_line(r"msg=admin at=(\S+)")[1]
        self.gateway.await_ready()
        self.client = Client(self.gateway.address)
        self.addCleanup(self.client.close)

    def ask(self, *arguments, **named):
        reply = self.client.ask(*arguments, **named)
        self.assertLess(reply.status, 300, reply.said)
        return reply

    def queue(self, *arguments):
        """What the command prints."""
        running = command(self.admin, *arguments)
        out, err = running.communicate(timeout=gateway.TIMEOUT_SECONDS)
        self.assertEqual(running.returncode, 0, err)
        return json.loads(out)

    def refused(self, *arguments):
        running = command(self.admin, *arguments)
        _, err = running.communicate(timeout=gateway.TIMEOUT_SECONDS)
        self.assertEqual(running.returncode, 1, err)
        return err

    def counts(self, queue):
        [counts] = self.queue("stats", f"{ACCOUNT}/{queue}")
        return counts

class AdminTest(Fixture):

    def test_shows_queues_and_what_is_in_them(self):
        self.start()
        self.assertEqual(self.queue("list", "--account", ACCOUNT), [])
        self.ask("PUT", "/orders")
        self.ask("PUT", "/empty")
        self.ask("POST", "/orders/messages", message("one"))
        self.ask("POST", "/orders/messages", message("four"))
        self.ask("GET", "/orders/messages")
        names = [found["queue"] for found in self.queue("list", "--account", ACCOUNT)]
        self.assertEqual(names, [f"{ACCOUNT}/empty", f"{ACCOUNT}/orders"])
        counts = self.counts("orders")
        self.assertEqual((counts["ready"], counts["in_flight"], counts["total_in"]), (1, 1, 2))
        if not gateway.ON_NATS:  # there, a peek shows what was never got
            [seen] = self.queue("peek", f"{ACCOUNT}/orders")
            self.assertEqual((seen["content"], seen["dequeue_count"]), ("4 bytes", 0))
        self.assertEqual(self.queue("poison", f"{ACCOUNT}/orders"), [])
        self.assertIn("none", self.refused("stats", f"{ACCOUNT}/none"))
        self.assertEqual(self.gateway.stop(), 0)

    def test_purges_a_queue_under_the_hands_of_its_clients(self):
        self.start()
        self.ask("PUT", "/orders")
        for _ in range(5):
            self.ask("POST", "/orders/messages", message("x"))
        [held] = self.ask("GET", "/orders/messages").messages()
        self.queue("purge", f"{ACCOUNT}/orders")
        self.assertEqual(self.counts("orders")["ready"], 0)
        self.assertEqual(self.ask("GET", "/orders/messages").messages(), [])
        if not gateway.ON_NATS:  # there, it cannot tell
            gone = f"/orders/messages/{held['MessageId']}?popreceipt={held['PopReceipt']}"
            self.assertEqual(self.client.ask("DELETE", gone).said, "404 MessageNotFound")

    def test_lets_those_in_whom_the_policy_names(self):
        policy = self.folder / "policy.yaml"
        policy.write_text("roles:\n"
                          "  - name: lookers\n    members: [loopback]\n"
                          "    methods: ['muster.v1.QueueService/List*']\n")
        self.start("--policy", policy)
        self.ask("PUT", "/orders")
        self.assertEqual(len(self.queue("list", "--account", ACCOUNT)), 1)
        self.assertIn("policy does not allow", self.refused("purge", f"{ACCOUNT}/orders"))

    def test_does_not_serve_strangers_without_tls(self):
        done = subprocess.run(
            [gateway.GATEWAY, "--listen", "127.0.0.1:0", "--data-dir", self.folder / "other",
             "--admin", "0.0.0.0:0"],
            stderr=subprocess.PIPE, text=True, timeout=gateway.TIMEOUT_SECONDS)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("0.0.0.0:0", done.stderr)


@unittest.skipIf(gateway.ON_NATS, "the gateway makes no poison there")
class PoisonTest(Fixture):

    def make_poison(self, queue, count):
        """Each message is got once, and never deleted. Returns the name of the poison queue."""
        self.ask("PUT", f"/{queue}", headers={"x-ms-meta-muster-maxdequeue": "1"})
        for number in range(count):
            self.ask("POST", f"/{queue}/messages", message(f"message {number}"))
        path = f"/{queue}/messages?numofmessages=32&visibilitytimeout=600"
        got = []
        while len(got) < count:
            got += self.ask("GET", path).messages()
        for taken in got:
            self.ask("PUT", f"/{queue}/messages/{taken['MessageId']}?visibilitytimeout=0"
                            f"&popreceipt={taken['PopReceipt']}", message("given back"))
        self.assertEqual(self.ask("GET", path).messages(), [])
        return f"{queue}-poison"

    def test_redrives_poison_to_the_clients_that_wait_for_it(self):
        self.start()
        poison = f"{ACCOUNT}/{self.make_poison('orders', 3)}"
        seen = self.queue("poison", poison)
        self.assertEqual(len(seen), 3)
        self.assertIn("received 1 times", seen[0]["cause"])
        self.assertIn("127.0.0.1", seen[0]["holder"])
        done = self.queue("redrive", poison, "--message", seen[1]["message"])
        self.assertEqual(done["messages"], 1)
        self.ask("PUT", "/orders?comp=metadata", headers={"x-ms-meta-muster-longpoll": "50"})
        self.assertEqual(len(self.ask("GET", "/orders/messages").messages()), 1)
        waiter = Waiter(self.gateway.address)
        waiter.start()
        self.assertEqual(self.queue("redrive", poison)["messages"], 2)
        waiter.join()
        self.assertEqual(waiter.texts, ["given back"])
        self.assertEqual(self.queue("poison", poison), [])

    def calls(self, code):
        connection = http.client.HTTPConnection(self.metrics, timeout=gateway.TIMEOUT_SECONDS)
        try:
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
        finally:
            connection.close()
        found = re.search(r'^rpc_server_call_duration_seconds_count\{'
                          r'method="muster.v1.QueueService/Redrive",'
                          rf'code="{code}"\}} (\d+)', page, re.MULTILINE)
        return int(found[1]) if found else 0

    def start_slow_redrive(self):
        """Of 40 messages, one a second: it would take longer than a test."""
        poison = f"{ACCOUNT}/{self.make_poison('orders', 40)}"
        running = command(self.admin, "redrive", poison, "--rate", "1")
        self.addCleanup(running.communicate)
        self.addCleanup(running.kill)
        while self.counts("orders")["ready"] == 0:
            self.assertIsNone(running.poll())
        return poison, running

    def test_ends_a_redrive_with_its_caller_and_the_next_one_goes_on(self):
        self.start()
        poison, running = self.start_slow_redrive()
        running.kill()
        while self.calls("CANCELLED") == 0:
            self.assertIsNone(self.gateway.process.poll())
        left = self.counts("orders-poison")["ready"]
        self.assertGreater(left, 20)
        self.assertEqual(left + self.counts("orders")["ready"], 40)
        self.assertEqual(self.queue("redrive", poison, "--rate", "100000")["messages"], left)
        self.assertEqual(self.counts("orders")["ready"], 40)

    def test_ends_a_redrive_when_the_gateway_stops(self):
        self.start()
        _, running = self.start_slow_redrive()
        self.assertEqual(self.gateway.stop(), 0)
        _, err = running.communicate(timeout=gateway.TIMEOUT_SECONDS)
        self.assertEqual(running.returncode, 5, err)  # try again
        self.start()
        left = self.counts("orders-poison")["ready"]
        self.assertGreater(left, 20)
        self.assertEqual(left + self.counts("orders")["ready"], 40)


class OperationTest(unittest.TestCase):
    """What operators expect of each service."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        self.addCleanup(folder.cleanup)
        self.service = gateway.Service(pathlib.Path(folder.name))
        self.addCleanup(self.service.kill)

    def test_its_metrics_are_90_ports_above_its_own_unless_it_is_told_otherwise(self):
        port = free_ports(2, step=90)
        running = self.service.start_gateway(listen=f"127.0.0.1:{port}", metrics=None, wait=False)
        self.assertEqual(running.await_line(r"msg=metrics at=(\S+)/metrics")[1], f"127.0.0.1:{port + 90}")

    def test_a_signal_switches_its_log_to_debug_and_back(self):
        running = self.service.start_gateway()
        for level in ("debug", "info"):
            running.process.send_signal(signal.SIGUSR1)
            running.await_line(f'msg="the log level changes" to={level}')


if __name__ == "__main__":
    unittest.main()
