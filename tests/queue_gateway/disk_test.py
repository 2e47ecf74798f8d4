# SPDX-License-Identifier: Apache-2.0
"""A gateway whose disk is full: what it says of writes, that it reads on, and that all it has answered 201 is there
when there is room again. MUSTER names the command."""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import threading
import unittest
import xml.etree.ElementTree

import gateway  # puts the folder of small_disk on the path
from gateway import Client, message
from small_disk import SmallDisk, enter_a_namespace

MUSTER = os.environ["MUSTER"]
SMALL, LARGE = 64 << 20, 1 << 30  # of which only what is written takes memory
WRITERS = 4
# What is left of it: for a part of the log, for the log but no file beside it, for several of both.
FREE_KIBIBYTES = [100, 1500, None]
WRITES = [("POST", "/queue/messages", message("x")), ("GET", "/queue/messages", b""), ("PUT", "/other", b""),
          ("PUT", "/queue?comp=metadata", b""), ("DELETE", "/queue/messages", b""), ("DELETE", "/queue", b"")]
READS = ["/queue/messages?peekonly=true&numofmessages=32", "/queue?comp=metadata", "/?comp=list", "/queue?comp=acl",
         "/?restype=service&comp=properties", "/queue?comp=muster-stats"]


class Writer(threading.Thread):
    """Puts until it is refused."""

    def __init__(self, address, name):
        super().__init__()
        self.client = Client(address)
        self.name = name
        self.put = set()
        self.refusal = None

    def run(self):
        with contextlib.closing(self.client):
            number = 0
            while True:
                text = f"{self.name}-{number} ".ljust(20_000, "x")
                reply = self.client.ask("POST", "/queue/messages", message(text))
                if reply.status != 201:
                    self.refusal = reply
                    return
                self.put.add(text)
                number += 1


class DiskTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        self.addCleanup(folder.cleanup)
        self.disk = SmallDisk(pathlib.Path(folder.name) / "disk", SMALL)
        self.addCleanup(self.disk.unmount)
        self.data = self.disk.path / "data"

    def start(self):
        running = gateway.Gateway(self.data)
        self.addCleanup(running.kill)
        return running

    def assert_says_why(self, reply):
        """As the API has it: an error of the server, with its code in the header and in the document."""
        self.assertIn(reply.status, (500, 503), reply.said)
        document = xml.etree.ElementTree.fromstring(reply.body)
        self.assertEqual(document.tag, "Error")
        self.assertEqual(document.findtext("Code"), reply.headers["x-ms-error-code"])
        self.assertIn(reply.headers["x-ms-request-id"], document.findtext("Message"))

    def fill(self, running):
        """Returns what was answered 201."""
        writers = [Writer(running.address, str(i)) for i in range(WRITERS)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
            self.assert_says_why(writer.refusal)
        put = set().union(*(writer.put for writer in writers))
        self.assertGreater(len(put), 0)
        return put

    def assert_only_reads(self, running):
        with contextlib.closing(Client(running.address)) as client:
            for method, path, body in WRITES:
                with self.subTest(method=method, path=path):
                    self.assert_says_why(client.ask(method, path, body))
            for path in READS:
                self.assertEqual(client.ask("GET", path).said, "200", path)
            peeked = client.ask("GET", READS[0]).messages()
        self.assertEqual(len(peeked), 32)
        self.assertEqual(running.asked_for_health("/readyz"),
                         (503, "only reads: its disk is full, or fails"))
        self.assertEqual(running.asked_for_health("/healthz"), (200, "alive"))
        running.await_line(r"level=error msg=\"nothing is written any more; reads go on\".*make room")

    def assert_all_is_there(self, put):
        checked = subprocess.run([MUSTER, "check", "--data-dir", str(self.data)], capture_output=True,
                                 text=True, timeout=gateway.TIMEOUT_SECONDS)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        running = self.start()
        seen = []
        with contextlib.closing(Client(running.address)) as client:
            self.assertEqual(client.ask("POST", "/queue/messages", message("late")).said, "201")
            while messages := client.ask(
                    "GET", "/queue/messages?numofmessages=32&visibilitytimeout=600").messages():
                seen += [m["MessageText"] for m in messages]
        self.assertEqual(len(seen), len(set(seen)), "no message is there twice")
        self.assertEqual(put - set(seen), set(), "answered 201, and gone")
        # Of each writer's last put the outcome is unknown.
        self.assertLessEqual(len(set(seen) - put - {"late"}), WRITERS)
        self.assertEqual(running.stop(), 0)

    def test_keeps_what_it_has_answered_wherever_the_disk_becomes_full(self):
        for kibibytes in FREE_KIBIBYTES:
            with self.subTest(free_kibibytes=kibibytes):
                running = self.start()
                with contextlib.closing(Client(running.address)) as client:
                    client.ask("DELETE", "/queue")
                    self.assertEqual(client.ask("PUT", "/queue").said, "201")
                    for i in range(32):
                        self.assertEqual(client.ask("POST", "/queue/messages", message(f"early {i}")).said, "201")
                if kibibytes is not None:
                    self.disk.leave_free(kibibytes)
                put = self.fill(running) | {f"early {i}" for i in range(32)}
                self.assert_only_reads(running)
                running.kill()
                self.disk.remount(f"size={LARGE}")
                if kibibytes is not None:
                    self.disk.make_room()
                self.assert_all_is_there(put)
                self.disk.remount(f"size={SMALL}")

    def test_says_in_one_line_that_it_cannot_start_on_a_full_disk(self):
        running = self.start()
        put = {f"{i} ".ljust(20_000, "x") for i in range(50)}
        with contextlib.closing(Client(running.address)) as client:
            self.assertEqual(client.ask("PUT", "/queue").said, "201")
            for text in put:
                self.assertEqual(client.ask("POST", "/queue/messages", message(text)).said, "201")
        running.kill()
        self.disk.leave_free(0)
        done = subprocess.run([gateway.GATEWAY, "--listen", "127.0.0.1:0", "--data-dir", str(self.data)],
                              capture_output=True, text=True, timeout=gateway.TIMEOUT_SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\A[^\n]*No space left on device[^\n]*\n\Z")
        self.assertIn(str(self.data), done.stderr)
        self.disk.make_room()
        self.assert_all_is_there(put)

    def test_asks_to_be_started_again_once_there_is_room(self):
        running = self.start()
        with contextlib.closing(Client(running.address)) as client:
            self.assertEqual(client.ask("PUT", "/queue").said, "201")
        put = self.fill(running)
        self.disk.remount(f"size={LARGE}")
        running.await_line("has room: start again")
        self.assertEqual(running.wait(), 1)
        self.assert_all_is_there(put)


if __name__ == "__main__":
    enter_a_namespace()
    unittest.main()
