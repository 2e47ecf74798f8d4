# SPDX-License-Identifier: Apache-2.0
"""The requests of the paper of 2008, byte for byte over a socket, and their answers. Only what the examples mark as
{name} is of today: the date, the signature by the key of the test, what the server makes."""

import base64
import email.utils
import hashlib
import hmac
import pathlib
import re
import socket
import tempfile
import unittest
import urllib.parse

import gateway

EXAMPLES = pathlib.Path(__file__).with_name("paper_examples.txt").read_text()
KEY = base64.b64encode(b"the key of sally of 64 bytes, as the service makes them for all.").decode()
DATA = bytes(range(256)) * 15 + b"\xff" * 60
LIFETIME = "?messagettl=3600"
PATTERNS = {
    "date": r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", "server": r"\S+",
    "request_id": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "base64": r"[A-Za-z0-9+/]+={0,2}",
    "message": r"(?s:.+)", "too_old": ".*more than 15m.*", "receipt": r"[^<\s]+"}
PATTERNS["id"] = PATTERNS["request_id"]
PATTERNS["inserted"] = PATTERNS["expires"] = PATTERNS["visible"] = PATTERNS["date"]


def example(name):
    """The request and the answer, with their marks."""
    [found] = re.findall(rf"^=== {name}\n(.*?)--- answer\n(.*?)(?:\n===|\Z)", EXAMPLES, re.S | re.M)
    return found


def signature_of(text):
    """As the service of 2008 wanted it: a few headers, x-ms-*, and the resource without its query."""
    head = text.split("\n\n")[0].split("\n")
    method, target, _ = head[0].split(" ")
    headers = dict(line.split(": ", 1) for line in head[1:])
    path = urllib.parse.urlsplit(target).path
    signed = (f"{method}\n{headers.get('Content-MD5', '')}\n{headers.get('Content-Type', '')}\n\n"
              f"x-ms-date:{headers['x-ms-date']}\n/sally{path}")
    mac = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
    return base64.b64encode(mac).decode()


def bytes_of(request, **marked):
    marked = {"date": email.utils.formatdate(usegmt=True),
              "md5": base64.b64encode(hashlib.md5(DATA).digest()).decode(), **marked}
    for name, value in marked.items():
        request = request.replace("{%s}" % name, value)
    request = request.replace("{signature}", signature_of(request))
    head, body = request.split("\n\n", 1)
    return head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + (DATA if "{data}" in body else b"")


def pattern_of(text):
    """Of a text with marks; each becomes a group."""
    parts = re.split(r"\{(\w+)\}", text)
    seen, pattern = set(), ""
    for i, part in enumerate(parts):
        if i % 2 == 0:
            pattern += re.escape(part)
            continue
        pattern += f"(?P={part})" if part in seen else f"(?P<{part}>{PATTERNS[part]})"
        seen.add(part)
    return pattern


class PaperTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        cls.addClassCleanup(folder.cleanup)
        service = gateway.Service(folder.name)
        cls.addClassCleanup(service.kill)
        cls.running = service.start_gateway("--account", f"sally:{KEY}")

    def send(self, request):
        """The lines of the answer's head, and its body."""
        with socket.create_connection(("127.0.0.1", self.running.port), gateway.TIMEOUT_SECONDS) as peer:
            peer.sendall(request)
            peer.shutdown(socket.SHUT_WR)
            reply = b"".join(iter(lambda: peer.recv(65536), b""))
        head, body = reply.decode().split("\r\n\r\n", 1)
        return head.split("\r\n"), body

    def create(self):
        request = ("PUT http://sally.queue.core.windows.net/myqueue HTTP/1.1\n"
                   "Host: sally.queue.core.windows.net\nContent-Length: 0\n"
                   "Authorization: SharedKey sally: {signature}\nx-ms-date: {date}\n\n")
        head, _ = self.send(bytes_of(request))
        self.assertIn(head[0], ("HTTP/1.1 201 Created", "HTTP/1.1 204 No Content"))

    def replay(self, name, without="", **marked):
        """Returns what stands in the answer for its marks. `without`: what the request is to leave out."""
        request, answer = example(name)
        request = request.replace(without, "", 1)
        head, body = self.send(bytes_of(request, **marked))
        wanted_head, _, wanted_body = answer.partition("\n\n")
        for line in wanted_head.splitlines():
            self.assertTrue([one for one in head if re.fullmatch(pattern_of(line), one)], f"{line} in {head}")
        self.assertEqual(head[0], wanted_head.splitlines()[0])
        found = re.fullmatch(pattern_of(wanted_body.strip()), body)
        self.assertTrue(found, f"{wanted_body} in {body[:2000]}")
        return found.groupdict()

    def test_answers_the_requests_of_the_paper(self):
        self.create()
        # Over NATS no message expires, and a put that asks for it is refused.
        self.replay("PutMessage", without=LIFETIME if gateway.ON_NATS else "")
        got = self.replay("GetMessages")
        self.assertEqual(base64.b64decode(got["base64"]), DATA)
        times = {name: email.utils.parsedate_to_datetime(got[name])
                 for name in ("inserted", "expires", "visible")}
        if gateway.ON_NATS:
            self.assertEqual(times["expires"].year, 9999)
        else:
            self.assertEqual((times["expires"] - times["inserted"]).total_seconds(), 3600)
        # The paper has receipts with small letters after each per cent sign.
        self.replay("DeleteMessage", id=got["id"], receipt=got["receipt"].replace(".", "%2e"))

    @unittest.skipUnless(gateway.ON_NATS, "the embedded engine can")
    def test_refuses_a_put_that_asks_for_a_lifetime(self):
        self.create()
        head, body = self.send(bytes_of(example("PutMessage")[0]))
        self.assertEqual(head[0], "HTTP/1.1 400 Bad Request")
        self.assertIn("<Code>OutOfRangeQueryParameterValue</Code>", body)
        self.assertIn("<QueryParameterName>messagettl</QueryParameterName>", body)

    def test_reads_a_request_as_it_was_printed_and_finds_it_too_old(self):
        self.create()
        self.replay("DeleteMessage as printed")


if __name__ == "__main__":
    unittest.main()
