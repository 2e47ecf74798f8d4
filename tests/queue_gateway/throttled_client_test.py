# SPDX-License-Identifier: Apache-2.0
"""A real client whose queue is beyond its target, with the retry policy that it has by itself:
`throttled_client_test.py CLIENT`, with a name of the clients of scenarios.json. It prints what the client did, as seen
between it and the gateway."""

import contextlib
import http.client
import http.server
import json
import pathlib
import sys
import tempfile
import threading
import time
import unittest

import client_programs
import gateway

CLIENT = sys.argv.pop(1)
TRAITS = json.loads((pathlib.Path(__file__).parent / "scenarios.json").read_text())["clients"][CLIENT]
COMMAND = client_programs.command_of(CLIENT)
REQUESTS_A_SECOND = 0.1  # so a request that is refused is told to come back in some ten seconds
LEAST_WAIT_SECONDS = 8
GIVES_UP = TRAITS.get("tries") == 1
HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding")


def ask(running, method, path):
    """On a connection of its own, as there may be minutes between two of them."""
    with contextlib.closing(gateway.Client(running.address)) as client:
        return client.ask(method, path)


class Try:
    """One request, and its answer."""

    def __init__(self, handler):
        self.began = time.monotonic()
        self.answered = None
        self.request_id = handler.headers.get("x-ms-client-request-id")
        self.status = None
        self.retry_after = None


class Wire(http.server.ThreadingHTTPServer):
    """Passes requests on to a gateway, and notes them. While `is_busy` says so, it uses up the queue's target before
    it passes one on."""

    daemon_threads = True

    def __init__(self, running, is_busy):
        super().__init__(("127.0.0.1", 0), Handler)
        self.running = running
        self.is_busy = is_busy
        self.tries = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def use_up_the_target(self):
        """So that the next request is told to wait for most of ten seconds."""
        while True:
            reply = ask(self.running, "GET", "/throttled/messages?peekonly=true")
            if reply.status == 503 and int(reply.headers["Retry-After"]) >= LEAST_WAIT_SECONDS:
                return
            time.sleep(0.05)

    def connection_string(self):
        return self.running.connection_string().replace(self.running.address, "127.0.0.1:%d" % self.server_port)

    def pauses(self):
        return [later.began - earlier.answered for earlier, later in zip(self.tries, self.tries[1:])]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        seen = Try(self)
        if self.server.is_busy(len(self.server.tries)):
            self.server.use_up_the_target()
        upstream = http.client.HTTPConnection(self.server.running.address, timeout=gateway.TIMEOUT_SECONDS)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            upstream.putheader(name, value)
        upstream.endheaders(body)
        reply = upstream.getresponse()
        content = reply.read()
        upstream.close()
        seen.status = reply.status
        seen.retry_after = reply.headers.get("Retry-After")
        seen.answered = time.monotonic()
        self.server.tries.append(seen)
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = pass_on

    def log_message(self, *_):
        pass


class ThrottledClientTest(unittest.TestCase):

    def put_through(self, is_busy):
        """What the client shows for a put, with what it did; `is_busy` is asked with the number of requests before."""
        with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
            service = gateway.Service(folder)
            self.addCleanup(service.kill)
            running = service.start_gateway("--queue-requests", REQUESTS_A_SECOND)
            self.assertEqual(ask(running, "PUT", "/throttled").said, "201")
            wire = Wire(running, is_busy)
            self.addCleanup(wire.server_close)
            self.addCleanup(wire.shutdown)
            program = client_programs.ProgramClient(COMMAND, wire.connection_string(), own_retries=True)
            answer = program.call({"do": "PutMessage", "queue": "throttled", "text": "x"})
            program.close()
            while (peeked := ask(running, "GET", "/throttled/messages?peekonly=true&numofmessages=32")).status == 503:
                time.sleep(int(peeked.headers["Retry-After"]))
            self.assertEqual(running.stop(), 0)
            self.tell(wire)
            for refused in wire.tries:
                self.assertIn(refused.status, (201, 503))
                self.assertTrue(refused.status == 201 or int(refused.retry_after) >= 1)
            return answer, wire, [one["MessageText"] for one in peeked.messages()]

    def tell(self, wire):
        ids = [one.request_id for one in wire.tries]
        print(f"{self._testMethodName}, {TRAITS['package']}: {len(wire.tries)} tries, answered "
              f"{[one.status for one in wire.tries]} with Retry-After {[one.retry_after for one in wire.tries]}, "
              f"seconds between them {[round(pause, 1) for pause in wire.pauses()]}, request ids: "
              f"{'none' if not ids[0] else 'one' if len(set(ids)) == 1 else 'another each time'}", file=sys.stderr)

    def check_what_it_heeds(self, wire):
        if TRAITS.get("heeds_retry_after"):
            for refused, pause in zip(wire.tries, wire.pauses()):
                self.assertGreaterEqual(pause, int(refused.retry_after) - 1)

    def test_gets_through_when_it_backs_off(self):
        answer, wire, stored = self.put_through(lambda before: before == 0)
        if GIVES_UP:
            self.assertEqual((answer, stored), ({"refused": "503 ServerBusy"}, []))
            return
        self.assertNotIn("refused", answer)
        self.assertEqual(wire.tries[-1].status, 201)
        self.assertEqual({one.status for one in wire.tries[:-1]}, {503})
        self.assertGreater(len(wire.tries), 1)
        self.assertEqual(stored, ["x"], "stored once, by the try that was let in")
        self.check_what_it_heeds(wire)

    def test_gives_up_when_it_is_told_to_wait_each_time(self):
        answer, wire, stored = self.put_through(lambda before: True)
        self.assertEqual(answer, {"refused": "503 ServerBusy"})
        self.assertEqual(len(wire.tries), TRAITS.get("tries", len(wire.tries)))
        self.assertGreaterEqual(len(wire.tries), 1)
        self.assertEqual(stored, [])
        self.check_what_it_heeds(wire)


if __name__ == "__main__":
    unittest.main()
