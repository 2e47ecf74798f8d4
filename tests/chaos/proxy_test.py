# SPDX-License-Identifier: Apache-2.0
"""A link passes, holds and cuts what goes through it."""

import contextlib
import pathlib
import socket
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))

from proxy import LOOPBACK, Link

WAIT_SECONDS = 30  # for what has to come
QUIET_SECONDS = 0.2  # for what must not come: a slow machine may hide a fault, and feigns none


class Echo:
    """A server that sends back what it gets. `hung_up` is set when a client has gone."""

    def __init__(self):
        self.listener = socket.create_server((LOOPBACK, 0))
        self.address = "%s:%d" % self.listener.getsockname()
        self.hung_up = threading.Event()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self.echo, args=(client,), daemon=True).start()

    def echo(self, client):
        with client, contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                client.sendall(data)
        self.hung_up.set()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class LinkTest(unittest.TestCase):
    def setUp(self):
        self.server = Echo()
        self.addCleanup(lambda: self.server.close())
        self.link = Link(self.server.address)
        self.addCleanup(self.link.close)

    def connect(self):
        host, port = self.link.address.split(":")
        client = socket.create_connection((host, int(port)), WAIT_SECONDS)
        self.addCleanup(client.close)
        return client

    def exchange(self, client, data):
        client.sendall(data)
        return self.receive(client, len(data))

    @staticmethod
    def receive(client, size):
        """Returns what comes, at most `size` bytes; less if the other side hangs up."""
        client.settimeout(WAIT_SECONDS)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while len(got) < size and (data := client.recv(size - len(got))):
                got += data
        return got

    def assert_nothing_comes(self, client):
        client.settimeout(QUIET_SECONDS)
        with self.assertRaises(TimeoutError):
            client.recv(1)

    def test_it_passes_all_in_both_directions(self):
        data = bytes(range(256)) * 4096
        client = self.connect()
        sender = threading.Thread(target=client.sendall, args=(data,))
        sender.start()
        self.assertEqual(self.receive(client, len(data)), data)
        sender.join()

    def test_a_hung_link_passes_nothing_and_goes_on_when_it_is_mended(self):
        client = self.connect()
        self.assertEqual(self.exchange(client, b"before"), b"before")
        self.link.hang()
        client.sendall(b"held")
        self.assert_nothing_comes(client)
        self.link.mend()
        self.assertEqual(self.receive(client, 4), b"held")

    def test_a_hung_link_does_not_tell_that_the_other_side_is_gone(self):
        client = self.connect()
        self.exchange(client, b"before")
        self.link.hang()
        client.shutdown(socket.SHUT_RDWR)
        self.assertFalse(self.server.hung_up.wait(QUIET_SECONDS))
        self.link.mend()
        self.assertTrue(self.server.hung_up.wait(WAIT_SECONDS))

    def test_a_hung_link_that_is_reset_loses_its_connections(self):
        client = self.connect()
        self.exchange(client, b"before")
        self.link.hang()
        client.sendall(b"lost")
        self.link.mend(reset=True)
        self.assertEqual(self.receive(client, 4), b"")
        self.assertEqual(self.exchange(self.connect(), b"after"), b"after")

    def test_a_cut_link_has_no_connections_until_it_is_mended(self):
        client = self.connect()
        self.exchange(client, b"before")
        self.link.cut()
        self.assertEqual(self.receive(client, 1), b"")
        self.assertEqual(self.receive(self.connect(), 1), b"")
        self.link.mend()
        self.assertEqual(self.exchange(self.connect(), b"after"), b"after")

    def test_a_slow_link_passes_everything(self):
        self.link.slow(0.05)
        self.assertEqual(self.exchange(self.connect(), b"late"), b"late")

    def test_a_link_to_a_server_that_is_down_closes_connections_at_once(self):
        self.server.close()
        client = self.connect()
        self.server = Echo()  # for the cleanup
        self.assertEqual(self.receive(client, 1), b"")


if __name__ == "__main__":
    unittest.main(verbosity=2)
