# SPDX-License-Identifier: Apache-2.0
"""Just enough of the NATS protocol to read messages in a stream, and to replace them."""

import base64
import json
import socket

TIMEOUT_SECONDS = 30


class NatsWire:
    """A connection that sends requests and waits for the answers."""

    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_SECONDS)
        self.stream = self.socket.makefile("rwb")
        self.line()  # INFO
        self.say(b'CONNECT {"verbose":false}\r\nSUB test.inbox 1\r\n')

    def say(self, data):
        self.stream.write(data)
        self.stream.flush()

    def line(self):
        return self.stream.readline().decode()

    def request(self, subject, data):
        """Returns the JSON object that `subject` answers."""
        self.say(b"PUB %s test.inbox %d\r\n%s\r\n" % (subject.encode(), len(data), data))
        while True:
            words = self.line().split()
            if words[0] == "MSG":
                answer = json.loads(self.stream.read(int(words[-1]) + 2))
                assert "error" not in answer, (subject, answer)
                return answer
            if words[0] == "PING":
                self.say(b"PONG\r\n")
            elif words[0] == "-ERR":
                raise AssertionError(words)

    def api(self, endpoint, **arguments):
        return self.request(f"$JS.API.{endpoint}", json.dumps(arguments).encode())

    def sequences(self, stream):
        state = self.api(f"STREAM.INFO.{stream}")["state"]
        return range(max(1, state["first_seq"]), state["last_seq"] + 1)

    def message(self, stream, sequence):
        """(subject, data)"""
        found = self.api(f"STREAM.MSG.GET.{stream}", seq=sequence)["message"]
        return found["subject"], base64.b64decode(found["data"])

    def replace(self, stream, sequence, change):
        """Puts the message again as `change` makes it, and deletes the old one."""
        subject, data = self.message(stream, sequence)
        self.request(subject, change(data))
        self.api(f"STREAM.MSG.DELETE.{stream}", seq=sequence)

    def close(self):
        self.stream.close()
        self.socket.close()
