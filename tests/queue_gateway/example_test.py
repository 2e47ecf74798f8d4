# SPDX-License-Identifier: Apache-2.0
"""examples/gateway_orders as its README says: orders by Azure's SDK for Python, a worker in C++, invoices
back by the SDK. MUSTER_AZURE_PYTHON is a Python that has the SDK, ORDER_WORKER the worker, MUSTER the
command."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import gateway
import mesh
from nats_wire import NatsWire

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "gateway_orders"
PYTHON = os.environ.get("MUSTER_AZURE_PYTHON")
if not PYTHON:
    print("skipped: MUSTER_AZURE_PYTHON names no Python with the SDK", file=sys.stderr)
    sys.exit(gateway.SKIPPED)


class ExampleTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.service = gateway.Service(self.folder)
        self.addCleanup(self.service.kill)
        self.gateway = self.service.start_gateway("--admin", "127.0.0.1:0", wait=False)
        self.admin = self.gateway.await_line(r"msg=admin at=(\S+)")[1]
        self.gateway.await_ready()
        self.prices = self.folder / "prices.csv"
        shutil.copy(EXAMPLE / "prices.csv", self.prices)

    def orders(self, *arguments):
        """What orders.py prints."""
        environment = {**os.environ,
                       "AZURE_STORAGE_CONNECTION_STRING": self.gateway.connection_string()}
        done = subprocess.run([PYTHON, EXAMPLE / "orders.py", *arguments], env=environment,
                              capture_output=True, text=True, timeout=gateway.TIMEOUT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def start_worker(self):
        worker = mesh.Program([os.environ["ORDER_WORKER"], "--nats",
                               f"nats://{self.service.nats.address}", "--prices", self.prices],
                              "msg=working")
        self.addCleanup(worker.kill)
        worker.await_ready()
        return worker

    def queue(self, *arguments):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("MUSTER_")}
        done = subprocess.run(
            [os.environ["MUSTER"], "queue", *arguments, "--server", self.admin, "-o", "json"],
            env=environment, capture_output=True, text=True, timeout=gateway.TIMEOUT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def await_poison(self):
        poison = []
        while not poison:
            poison = self.queue("poison", f"{gateway.ACCOUNT}/orders")
        return poison

    def test_orders_become_invoices_by_any_number_of_workers(self):
        self.orders("put", "A-1", "tea=3")
        workers = [self.start_worker() for _ in range(2)]
        self.assertEqual(self.orders("invoices", "1"), "A-1: 12.60\n")
        for number in range(2, 6):
            self.orders("put", f"A-{number}", "tea=1", f"coffee={number}")
        self.assertEqual(sorted(self.orders("invoices", "4").splitlines()),
                         ["A-2: 18.10", "A-3: 25.05", "A-4: 32.00", "A-5: 38.95"])
        for worker in workers:
            self.assertEqual(worker.stop(), 0)
        counts = self.queue("stats", f"{gateway.ACCOUNT}/orders")[0]
        self.assertEqual((counts["ready"], counts["in_flight"], counts["poison"]), (0, 0, 0))

    def test_an_order_without_a_price_is_tried_again_then_poison_and_redriven(self):
        self.orders("put", "A-1", "cocoa=1")
        self.start_worker()
        [poison] = self.await_poison()
        self.assertEqual((poison["cause"], poison["attempts"]), ("attempt 5 of 5 failed: 'cocoa' has no price", 5))
        self.assertTrue(poison["holder"].startswith("order-worker"), poison)
        with open(self.prices, "a") as prices:
            prices.write("cocoa,3.10\n")
        done = self.queue("redrive", f"{gateway.ACCOUNT}/orders", "--rate", "10")
        self.assertEqual(done["messages"], 1)
        self.assertEqual(self.orders("invoices", "1"), "A-1: 3.10\n")

    def test_what_is_no_order_is_poison_at_once(self):
        self.orders("put", "A-1", "tea=1")
        client = gateway.Client(self.gateway.address)
        self.addCleanup(client.close)
        client.ask("POST", "/orders/messages", gateway.message("hello"))
        self.start_worker()
        [poison] = self.await_poison()
        self.assertEqual(poison["attempts"], 1)
        self.assertIn("no order", poison["cause"])
        self.assertEqual(self.orders("invoices", "1"), "A-1: 4.20\n")
        self.queue("purge", f"{gateway.ACCOUNT}/orders", "--poison")
        self.assertEqual(self.queue("poison", f"{gateway.ACCOUNT}/orders"), [])

    def test_an_order_of_a_worker_that_died_is_worked_on_by_another(self):
        client = gateway.Client(self.gateway.address)
        self.addCleanup(client.close)
        for queue in ("orders", "invoices"):
            client.ask("PUT", f"/{queue}", headers={"x-ms-meta-muster-visibility": "1s",
                                                    "x-ms-meta-muster-longpoll": "20"})
        os.mkfifo(self.folder / "pipe")  # the first worker reads its prices for ever
        self.prices.rename(self.folder / "real.csv")
        self.prices.symlink_to(self.folder / "pipe")
        client.ask("POST", "/orders/messages", gateway.message(
            '{"order": "A-1", "lines": [{"item": "tea", "units": 1}]}'))
        worker = self.start_worker()
        with open(self.prices, "w"):  # opens when the worker reads
            worker.kill()
        self.prices.unlink()
        shutil.copy(self.folder / "real.csv", self.prices)
        self.start_worker()
        found = []
        while not found:
            found = client.ask("GET", "/invoices/messages").messages()
        self.assertEqual(json.loads(found[0]["MessageText"]), {"order": "A-1", "total": "4.20"})

    def test_a_put_tells_the_listeners_of_the_mesh(self):
        wire = NatsWire(self.service.nats.address)
        self.addCleanup(wire.close)
        subject = f"muster.trigger.{gateway.ACCOUNT}.orders"
        wire.say(f"SUB {subject} 2\r\nPING\r\n".encode())
        while wire.line() != "PONG\r\n":
            pass
        self.orders("put", "A-1", "tea=1")
        words = wire.line().split()
        while words == ["PING"]:  # the server asks now and then whether a client is there
            wire.say(b"PONG\r\n")
            words = wire.line().split()
        self.assertEqual(words[:2], ["MSG", subject])
        event = wire.stream.read(int(words[-1]))
        self.assertIn(b"orders", event)
        self.assertIn(gateway.ACCOUNT.encode(), event)


if __name__ == "__main__":
    unittest.main()
