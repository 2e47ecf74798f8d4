# SPDX-License-Identifier: Apache-2.0
"""What no proper client sends, byte by byte over a socket: it gets a proper error or its connection is
closed, others are served as before, and nothing of it is left."""

import contextlib
import os
import pathlib
import socket
import struct
import unittest

import gateway
from gateway import ACCOUNT, message

PATH = f"/{ACCOUNT}/malformed/messages"
BILLION = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
RESET = struct.pack("ii", 1, 0)  # of SO_LINGER: a close that takes along what is under way


class Peer:
    """A raw connection."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), gateway.TIMEOUT_SECONDS)
        self.file = self.socket.makefile("rb")

    def send(self, *pieces):
        for piece in pieces:
            self.socket.sendall(piece)

    def reply(self):
        """The status, the code of the error and the body of the next reply; None: it hung up."""
        line = self.file.readline()
        if not line:
            return None
        headers = {}
        while (header := self.file.readline().strip()):
            name, _, value = header.partition(b":")
            headers[name.lower()] = value.strip().decode()
        body = self.file.read(int(headers.get(b"content-length", 0)))
        code = headers.get(b"x-ms-error-code")
        status = line.split()[1].decode()
        return f"{status} {code}" if code else status, body

    def said(self):
        reply = self.reply()
        return reply and reply[0]

    def close(self):
        self.file.close()
        self.socket.close()


def head(method, path, headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1",
             *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def put(body, extra=None, length=None):
    """A signed put, in its head and its body. `length`: what Content-Length says instead."""
    headers = gateway.signed_headers("POST", PATH, body)
    headers["Content-Length"] = len(body) if length is None else length
    return head("POST", PATH, {**headers, **(extra or {})}), body


def sockets_of(pid):
    count = 0
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            count += os.readlink(link).startswith("socket:")
    return count


class MalformedTest(gateway.GatewayTest):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sockets_before = sockets_of(cls.gateway.process.pid)

    def setUp(self):
        super().setUp()
        self.assertIn(self.said("PUT", "/malformed"), ("201", "204"))
        self.assertEqual(self.said("DELETE", "/malformed/messages"), "204")

    @contextlib.contextmanager
    def peer(self):
        with contextlib.closing(Peer(self.gateway.port)) as peer:
            yield peer

    def answers(self, *pieces):
        """What all of that is answered, and whether the connection is closed after the last reply."""
        with self.peer() as peer:
            peer.send(*pieces)
            peer.socket.shutdown(socket.SHUT_WR)
            return list(iter(peer.said, None))

    def assert_empty(self):
        self.assertEqual(self.ask("GET", "/malformed/messages?peekonly=true").messages(), [])

    def test_refuses_documents_that_are_none(self):
        for body in [
                b"", b"\0", b"plain", b"<QueueMessage>", b"<QueueMessage/>",
                b"<QueueMessage><MessageText>\0</MessageText></QueueMessage>",
                b"<QueueMessage><MessageText>\xff</MessageText></QueueMessage>",
                b"<QueueMessage><MessageText>&#0;</MessageText></QueueMessage>",
                b"<QueueMessage><MessageText>&#xD800;</MessageText></QueueMessage>",
                b"<QueueMessage><MessageText>&lol;</MessageText></QueueMessage>",
                b"<QueueMessage><MessageText><b>c</b></MessageText></QueueMessage>",
                b'<?xml version="1.0" encoding="nonsense"?>' + message("a").encode(),
                b'<?xml version="1.0" encoding="utf-16"?>' + message("a").encode(),
                b"<QueueMessage><MessageText>" + b"<a>" * 100_000,
                b'<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]>' +
                b"<QueueMessage><MessageText>&f;</MessageText></QueueMessage>",
                f'<!DOCTYPE a [<!ENTITY l0 "lol">{BILLION}]><QueueMessage><MessageText>&l9;'
                "</MessageText></QueueMessage>".encode()]:
            with self.subTest(body[:60]):
                self.assertEqual(self.said("POST", "/malformed/messages", body),
                                 "400 InvalidXmlDocument")
        self.assert_empty()

    def test_reads_a_document_in_another_encoding(self):
        for encoding in ("utf-16", "utf-8-sig", "iso-8859-1"):
            body = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>' + \
                message("h\u00e9")
            with self.subTest(encoding):
                self.assertEqual(self.said("POST", "/malformed/messages", body.encode(encoding)),
                                 "201")
        got = self.ask("GET", "/malformed/messages?numofmessages=32").messages()
        self.assertEqual([m["MessageText"] for m in got], ["h\u00e9"] * 3)

    def test_refuses_heads_that_are_none(self):
        for request in [
                b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                b"GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost: a\r\nx-ms-meta-a: \0\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost: a\r\nno header\r\n\r\n",
                b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: many\r\n\r\n",
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
                b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"]:  # a TLS greeting
            with self.subTest(request[:60]):
                self.assertEqual(self.answers(request), ["400 InvalidInput"])
        long = b"GET /" + b"a" * (96 << 10) + b" HTTP/1.1\r\nHost: a\r\n\r\n"
        self.assertEqual(self.answers(long), ["431 RequestHeadersTooLarge"])
        for name, value in [(b"a", b"a" * (64 << 10)), (b"a" * (64 << 10), b"a"), (b"Host", b"a" * 65_530)]:
            long = b"GET / HTTP/1.1\r\n" + name + b": " + value + b"\r\nHost: a\r\n\r\n"
            self.assertEqual(self.answers(long), ["431 RequestHeadersTooLarge"])
        many = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * 20_000 + b"\r\n"
        self.assertEqual(self.answers(many), ["431 RequestHeadersTooLarge"])
        gzip = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"
        self.assertEqual(self.answers(gzip), ["501 NotImplemented"])
        large = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n"
        self.assertEqual(self.answers(large), ["413 RequestBodyTooLarge"])

    def test_refuses_addresses_that_are_none(self):
        for path, expected in [("/%zz", "400 InvalidUri"), ("/a%", "400 InvalidUri"),
                               (f"/{ACCOUNT}/q/other/thing", "400 InvalidUri"),
                               (f"/{ACCOUNT}/..%2F..%2Fetc?comp=metadata",
                                "400 InvalidResourceName")]:
            with self.subTest(path):
                self.assertEqual(
                    self.answers(head("GET", path, gateway.signed_headers("GET", path))),
                    [expected])

    def test_answers_requests_in_a_row_in_their_order(self):
        pieces = [put(message(str(i)).encode()) for i in range(20)]
        wrong = put(b"<QueueMessage")
        with self.peer() as peer:
            peer.send(b"".join(part for piece in [*pieces, wrong, pieces[0]] for part in piece))
            said = [peer.said() for _ in range(22)]
        self.assertEqual(said, ["201"] * 20 + ["400 InvalidXmlDocument", "201"])
        got = self.ask("GET", "/malformed/messages?numofmessages=32").messages()
        self.assertEqual([m["MessageText"] for m in got], [*map(str, range(20)), "0"])

    def test_takes_a_chunked_body(self):
        body = message("in pieces").encode()
        headers = gateway.signed_headers("POST", PATH)  # whose length is not signed
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        request = head("POST", PATH, {**headers, "Transfer-Encoding": "chunked"})
        self.assertEqual(self.answers(request, chunks), ["201"])
        endless = (b"%x\r\n" % (64 << 10) + b"a" * (64 << 10) + b"\r\n") * 17
        self.assertEqual(self.answers(request, endless), ["413 RequestBodyTooLarge"])

    def test_drops_a_connection_whose_trailer_cannot_be_read(self):
        """It took the whole gateway along."""
        headers = gateway.signed_headers("POST", PATH)
        request = head("POST", PATH, {**headers, "Transfer-Encoding": "chunked"})
        for name, value in [(b"a", b"a" * (64 << 10)), (b"a" * (64 << 10), b"a")]:
            trailer = b"0\r\n" + name + b": " + value + b"\r\n\r\n"
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                self.assertIn(self.answers(request, trailer), ([], ["431 RequestHeadersTooLarge"]))
        self.assertEqual(self.said("GET", "/malformed/messages?peekonly=true"), "200")

    def test_refuses_nobody_for_bodies_that_do_not_come(self):
        """300 peers who only announced a mebibyte each had all others refused for half a minute."""
        first, _ = put(b"", length=1 << 20)
        with contextlib.ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(self.peer()).send(first)
            self.assertEqual(self.said("POST", "/malformed/messages", message("a").encode()), "201")

    def test_asks_for_a_body_that_is_held_back(self):
        first, body = put(message("x" * 5000).encode(), {"Expect": "100-continue"})
        with self.peer() as peer:
            peer.send(first)
            self.assertEqual(peer.said(), "100")
            peer.send(body)
            self.assertEqual(peer.said(), "201")
        # One that is too large is never asked for.
        first, _ = put(b"a", {"Expect": "100-continue"}, length=2 << 20)
        self.assertEqual(self.answers(first), ["413 RequestBodyTooLarge"])

    def test_does_not_trust_a_wrong_length(self):
        body = message("length").encode()
        # The signature covers the length.
        first, _ = put(body, length=len(body) - 1)
        self.assertEqual(self.answers(first, body), ["403 AuthenticationFailed", "400 InvalidInput"])
        # The rest never comes, and the peer has nothing more to say.
        first, _ = put(body, length=len(body) + 1)
        self.assertEqual(self.answers(first, body), [])
        self.assert_empty()

    def test_answers_a_peer_that_has_said_all(self):
        self.assertEqual(self.answers(*put(message("half closed").encode())), ["201"])

    def test_takes_a_request_byte_by_byte(self):
        request = b"".join(put(message("slow").encode()))
        self.assertEqual(self.answers(*(bytes([byte]) for byte in request)), ["201"])

    def test_survives_peers_that_vanish(self):
        first, body = put(message("x" * 60_000).encode())
        for sent in [b"", first[:9], first, first + body[:30_000], first + body]:
            for _ in range(20):
                with self.peer() as peer:
                    peer.send(sent)
                    peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.assertEqual(self.said("GET", "/malformed/messages?peekonly=true"), "200")

    def test_z_leaves_nothing_behind(self):
        """Last, by its name: every descriptor of what the other tests did is closed."""
        # The timeout of the test bounds it: closing takes the gateway a moment.
        while sockets_of(self.gateway.process.pid) > self.sockets_before + 1:  # this test's own
            self.assertEqual(self.said("GET", "/?comp=list"), "200")


if __name__ == "__main__":
    unittest.main()
