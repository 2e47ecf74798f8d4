# SPDX-License-Identifier: Apache-2.0
"""A connection to a gateway that sends many requests before it reads their answers, for tests of millions of
messages. A SAS in each address spares a signature of each request."""

import pathlib
import re
import socket
import sys
import time

import gateway

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "queue_auth"))
import signer  # noqa: E402: from the folder above

LENGTH = re.compile(rb"\r\nContent-Length: (\d+)", re.I)


def sas_of(queue):
    """For all that holders of messages do, and for a day."""
    fields = {"sp": "raup", "sv": gateway.VERSION,
              "se": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))}
    fields = signer.service_sas(gateway.ACCOUNT, gateway.KEY, queue, fields)
    return "&".join(f"{name}={signer.urllib.parse.quote(value, safe='')}" for name, value in fields.items())


class PipelinedClient:

    def __init__(self, address, queue, sas):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), gateway.TIMEOUT_SECONDS)
        self.path = f"/{gateway.ACCOUNT}/{queue}/messages"
        self.tail = f"{sas} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-version: {gateway.VERSION}\r\n"
        self.read = b""

    def close(self):
        self.socket.close()

    def request(self, method, rest="", query="", body=""):
        """As it goes out; `query` ends with & unless it is empty."""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        return f"{method} {self.path}{rest}?{query}{self.tail}{length}\r\n{body}"

    def ask(self, requests):
        """The status and the body of each answer, in order. An OSError: the gateway is gone."""
        self.socket.sendall("".join(requests).encode())
        return [self.answer() for _ in requests]

    def answer(self):
        while (end := self.read.find(b"\r\n\r\n")) < 0:
            self.receive()
        head = self.read[:end]
        found = LENGTH.search(head)
        last = end + 4 + (int(found[1]) if found else 0)
        while len(self.read) < last:
            self.receive()
        body, self.read = self.read[end + 4:last], self.read[last:]
        return int(head[9:12]), body

    def receive(self):
        more = self.socket.recv(1 << 20)
        if not more:
            raise ConnectionResetError("the gateway closed the connection")
        self.read += more
