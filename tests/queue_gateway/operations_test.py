# SPDX-License-Identifier: Apache-2.0
"""What operators do with a gateway: look at it, copy its data while it works, and mend what is damaged.
MUSTER names the command."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import gateway
import mesh
from gateway import Client, message

MUSTER = os.environ["MUSTER"]


def muster(*arguments):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("MUSTER_")}
    return subprocess.run([MUSTER, *map(str, arguments)], capture_output=True, text=True,
                          timeout=gateway.TIMEOUT_SECONDS, env=environment)


def texts_of(client, queue):
    """Of all messages that are ready."""
    texts = set()
    while True:
        reply = client.ask("GET", f"/{queue}/messages?numofmessages=32&visibilitytimeout=600")
        assert reply.status == 200, reply.said
        if not reply.messages():
            return texts
        texts.update(m["MessageText"] for m in reply.messages())


class OperationsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.data = self.folder / "data"

    def start(self, data=None, *arguments):
        running = gateway.Gateway(data or self.data, *arguments)
        self.addCleanup(running.kill)
        return running

    def client(self, running):
        client = Client(running.address)
        self.addCleanup(client.close)
        return client

    def findings(self, *addresses):
        options = [option for address in addresses for option in ("--gateway", address)]
        done = muster("doctor", *options, "-o", "json")
        return done.returncode, json.loads(done.stdout)

    def test_the_doctor_knows_gateways(self):
        running = self.start()
        code, [found] = self.findings(running.health)
        self.assertEqual((code, found["health"], found["found"]), (0, "ok", "is ready"))
        nowhere = mesh.free_address()
        code, [sound, gone] = self.findings(running.health, nowhere)
        self.assertEqual((code, sound["health"], gone["health"]), (1, "ok", "wrong"))
        self.assertEqual(gone["what"], f"queue gateway {nowhere}")
        code, [other] = self.findings(running.address)
        self.assertEqual((code, other["health"]), (1, "wrong"))
        self.assertIn("--health", other["to_do"])

    def test_prometheus_reads_metrics(self):
        running = gateway.Gateway(self.data, "--metrics", "127.0.0.1:0", wait=False)
        self.addCleanup(running.kill)
        at = running.await_line(r"msg=metrics at=(\S+)/metrics")[1]
        running.await_ready()
        client = self.client(running)
        client.ask("PUT", "/measured")
        client.ask("POST", "/measured/messages", message("x"))
        client.ask("GET", "/nowhere/messages")
        connection = http.client.HTTPConnection(at, timeout=gateway.TIMEOUT_SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
        for line in [
                'muster_gateway_requests_total{operation="put_message",code="201"} 1',
                'muster_gateway_requests_total{operation="get_messages",code="QueueNotFound"} 1',
                "muster_gateway_connections 1",
                f'muster_queue_backlog{{queue="{gateway.ACCOUNT}/measured"}} 1']:
            self.assertIn(line, page)
        self.assertRegex(page, 'muster_rocksdb_sync_seconds_count{store="queue"} [1-9]')

    def test_a_copy_of_a_running_gateway_has_all_that_was_acknowledged(self):
        running = self.start()
        self.client(running).ask("PUT", "/copied", headers={"x-ms-meta-kept": "yes"})
        self.client(running).ask("PUT", "/copied?comp=acl", (
            "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy/></SignedIdentifier>"
            "</SignedIdentifiers>"))
        acknowledged = set()
        enough, over = threading.Event(), threading.Event()

        def put(name):
            with contextlib.closing(Client(running.address)) as client:
                for number in range(100_000):
                    text = f"{name}-{number}"
                    assert client.ask("POST", "/copied/messages", message(text)).status == 201
                    acknowledged.add(text)
                    if number == 50:
                        enough.set()
                    if over.is_set():
                        return
        producers = [threading.Thread(target=put, args=(name,)) for name in "abcd"]
        for producer in producers:
            producer.start()
        self.assertTrue(enough.wait(gateway.TIMEOUT_SECONDS))
        running.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, running.process.pid, os.WSTOPPED)
        before = set(acknowledged)
        copy = self.folder / "copy"
        shutil.copytree(self.data, copy)
        running.process.send_signal(signal.SIGCONT)
        over.set()
        for producer in producers:
            producer.join()

        checked = muster("check", "--data-dir", copy)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        client = self.client(self.start(copy))
        self.assertGreater(len(before), 50)
        self.assertEqual(before - texts_of(client, "copied"), set())
        seen = client.ask("GET", "/copied?comp=metadata")
        self.assertEqual(seen.headers["x-ms-meta-kept"], "yes")
        self.assertEqual(client.ask("GET", "/copied?comp=acl").all("Id"), ["one"])

    def test_a_check_finds_damage_and_a_repair_mends_it(self):
        running = self.start()
        client = self.client(running)
        client.ask("PUT", "/damaged")
        texts = [f"message {number:03} {'x' * 1000}" for number in range(100)]
        for text in texts:
            self.assertEqual(client.ask("POST", "/damaged/messages", message(text)).said, "201")
        self.assertEqual(running.stop(), 0)
        sound = muster("check", "--data-dir", self.data)
        self.assertEqual(sound.returncode, 0, sound.stdout)
        self.assertRegex(sound.stdout, r"[1-9]\d* records, 0 damaged")

        self.start_and_stop()
        self.damage(b"message 050 x")
        found = muster("check", "--data-dir", self.data)
        self.assertEqual(found.returncode, 6, found.stdout)
        mended = muster("check", "--repair", "--data-dir", self.data, "--account", gateway.ACCOUNT)
        self.assertEqual(mended.returncode, 0, mended.stdout)
        again = muster("check", "--data-dir", self.data)
        self.assertEqual(again.returncode, 0, again.stdout)

        client = self.client(self.start())
        left = texts_of(client, "damaged")
        self.assertLessEqual(left, set(texts))
        # The damaged message is gone, with those in the same block of its file.
        self.assertNotIn(texts[50], left)
        self.assertGreater(len(left), 50)
        self.assertEqual(client.ask("POST", "/damaged/messages", message("new")).said, "201")
        self.assertEqual(texts_of(client, "damaged"), {"new"})

    def test_a_queue_that_lost_its_name_comes_back_in_the_account_that_is_named(self):
        running = self.start()
        client = self.client(running)
        client.ask("PUT", "/nameless", headers={"x-ms-meta-mark": "a-mark-to-be-damaged"})
        client.ask("POST", "/nameless/messages", message("kept"))
        self.assertEqual(running.stop(), 0)
        self.start_and_stop()
        self.damage(b"a-mark-to-be-damaged")
        mended = muster("check", "--repair", "--data-dir", self.data, "--account", gateway.ACCOUNT)
        self.assertEqual(mended.returncode, 0, mended.stdout)
        client = self.client(self.start())
        [name] = client.ask("GET", "/?comp=list").all("Name")
        self.assertRegex(name, r"^(recovered-\d+|nameless)$")
        self.assertEqual(texts_of(client, name), {"kept"})

    def start_and_stop(self):
        """So that what the log has is in the files of the store."""
        self.assertEqual(self.start().stop(), 0)

    def damage(self, text):
        """Changes a byte in each place of the store that has the text."""
        count = 0
        for path in (self.data / "queue").iterdir():
            content = bytearray(path.read_bytes()) if path.is_file() else b""
            for match in re.finditer(re.escape(text), bytes(content)):
                content[match.start()] ^= 1
                count += 1
            if count:
                path.write_bytes(content)
        self.assertGreater(count, 0)


if __name__ == "__main__":
    unittest.main()
