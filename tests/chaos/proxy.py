# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy on loopback that a test cuts, slows down and lets hang."""

import contextlib
import socket
import threading
import time

LOOPBACK = "127.0.0.1"
PIECE_BYTES = 1 << 16
CONNECT_SECONDS = 5


class Link:
    """The way to a server. Its address stays the same, also while the server is down.

    open   what arrives goes on
    slow   each piece goes on after `seconds`
    hung   nothing goes on, and neither end gets an error: the connections stay (a half-open network)
    cut    the connections are gone, and new ones are closed at once
    """

    def __init__(self, server):
        self.server = server
        self.changed = threading.Condition()
        self.state = "open"
        self.seconds = 0.0
        self.pairs = set()  # of the open connections; a pump that ends takes its pair away
        self.listener = socket.create_server((LOOPBACK, 0), backlog=128)
        self.address = "%s:%d" % self.listener.getsockname()
        threading.Thread(target=self.serve, daemon=True).start()

    def mend(self, reset=False):
        """Lets all pass again. What hung goes on, as after lost packets, or is reset, as by a router
        that has forgotten the connection."""
        if reset:
            self.hang_up()
        self.become("open")

    def slow(self, seconds):
        self.become("slow", seconds)

    def hang(self):
        self.become("hung")

    def cut(self):
        self.become("cut")
        self.hang_up()

    def close(self):
        self.become("closed")
        with contextlib.suppress(OSError):  # it may have no connection waiting
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.hang_up()

    def become(self, state, seconds=0.0):
        with self.changed:
            self.state = state
            self.seconds = seconds
            self.changed.notify_all()

    def hang_up(self):
        with self.changed:
            pairs = list(self.pairs)
        for pair in pairs:
            self.shut(pair)

    @staticmethod
    def shut(pair):
        for end in pair:
            # Not only closed: the pump of the other direction is still about to read.
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self.connect, args=(client,), daemon=True).start()

    def connect(self, client):
        with self.changed:
            refused = self.state in ("cut", "closed")
        try:
            if refused:
                raise OSError("cut")
            host, port = self.server.split(":")
            there = socket.create_connection((host, int(port)), CONNECT_SECONDS)
        except OSError:
            client.close()
            return
        there.settimeout(None)
        for end in (client, there):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pair = (client, there)
        with self.changed:
            self.pairs.add(pair)
        back = threading.Thread(target=self.pump, args=(there, client, pair), daemon=True)
        back.start()
        self.pump(client, there, pair)
        back.join()
        with self.changed:
            self.pairs.discard(pair)
        for end in pair:
            end.close()

    def pump(self, source, sink, pair):
        try:
            while data := source.recv(PIECE_BYTES):
                self.wait_to_pass()
                sink.sendall(data)
        except OSError:
            pass  # one of them has hung up
        # While the link is hung, an end does not learn either that the other one has gone.
        with self.changed:
            self.changed.wait_for(lambda: self.state != "hung")
        self.shut(pair)

    def wait_to_pass(self):
        with self.changed:
            self.changed.wait_for(lambda: self.state != "hung")
            seconds = self.seconds
        time.sleep(seconds)  # the delay itself
