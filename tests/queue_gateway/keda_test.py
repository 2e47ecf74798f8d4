# SPDX-License-Identifier: Apache-2.0
"""KEDA's scaler for Azure queues on a gateway: what it takes for the length of a queue is how many messages are there,
and it is active while there are some. Its calls are made by the client in Go (azure_go_client/keda.go)."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import gateway
from gateway import message

PROGRAM = pathlib.Path(os.environ.get("MUSTER_AZURE_CLIENTS", "/nonexistent")) / "go"
if not PROGRAM.exists():
    print("skipped: MUSTER_AZURE_CLIENTS has no go", file=sys.stderr)
    sys.exit(gateway.SKIPPED)
STRATEGIES = ("all", "visibleonly")


class KedaTest(gateway.GatewayTest):

    def setUp(self):
        super().setUp()
        self.queue = "/" + self._testMethodName.replace("_", "-").removeprefix("test-")
        self.assertEqual(self.said("PUT", self.queue), "201")

    def seen(self, strategy):
        """As KEDA has it: a client by a connection string, and the default pauses between tries."""
        step = {"do": "KedaMetric", "queue": self.queue[1:], "strategy": strategy}
        done = subprocess.run([PROGRAM], input=json.dumps(step) + "\n", capture_output=True, text=True, check=True,
                              env={**os.environ, "CONNECTION": self.gateway.connection_string()})
        return json.loads(done.stdout)

    def put(self, count):
        for number in range(count):
            self.assertEqual(self.said("POST", f"{self.queue}/messages", message(str(number))), "201")

    def check(self, length):
        for strategy in STRATEGIES:
            self.assertEqual(self.seen(strategy), {"metric": length, "active": length > 0}, strategy)

    def test_follows_the_depth(self):
        self.check(0)
        self.put(3)
        self.check(3)
        # visibleonly counts up to 31 by a peek, and asks for the length from there on.
        self.put(28)
        self.check(31)
        self.put(2)
        self.check(33)
        self.assertEqual(self.said("DELETE", f"{self.queue}/messages"), "204")
        self.check(0)

    def test_counts_what_workers_hold_unless_told_otherwise(self):
        self.put(3)
        held = self.ask("GET", f"{self.queue}/messages?numofmessages=2&visibilitytimeout=600").messages()
        self.assertEqual(self.seen("all"), {"metric": 3, "active": True})
        # Over NATS a peek shows what was never got: the same here.
        self.assertEqual(self.seen("visibleonly"), {"metric": 1, "active": True})
        for one in held:
            self.assertEqual(self.said("DELETE", f"{self.queue}/messages/{one['MessageId']}"
                                       f"?popreceipt={one['PopReceipt']}"), "204")
        self.check(1)

    def test_is_refused_a_queue_that_is_not_there(self):
        step = {"do": "KedaMetric", "queue": "not-there", "strategy": "all"}
        done = subprocess.run([PROGRAM], input=json.dumps(step) + "\n", capture_output=True, text=True, check=True,
                              env={**os.environ, "CONNECTION": self.gateway.connection_string()})
        self.assertEqual(json.loads(done.stdout), {"refused": "404 QueueNotFound"})


if __name__ == "__main__":
    unittest.main()
