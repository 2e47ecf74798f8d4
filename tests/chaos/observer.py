# SPDX-License-Identifier: Apache-2.0
"""Watches a run from outside: the report's file, an initiator's list, and the messages on their way."""

import contextlib
import json
import socket
import sqlite3
import threading
import time

LOOK_SECONDS = 0.1
LIST_SECONDS = 0.4
INPUTS = "muster.queue.*.*"


@contextlib.contextmanager
def opened(report):
    """A read transaction of the report's file. OSError, sqlite3.Error: it is not there now."""
    connection = sqlite3.connect(f"file:{report}?mode=ro", uri=True, timeout=1)
    with contextlib.closing(connection):
        connection.execute("BEGIN")
        yield connection


class Observer:
    """Records changes until it is stopped."""

    def __init__(self, mesh, clients, history):
        self.mesh = mesh
        self.clients = clients
        self.history = history
        self.ending = threading.Event()
        self.known = {}
        self.threads = [threading.Thread(target=self.repeat, args=work, daemon=True)
                        for work in ((self.look_at_report, LOOK_SECONDS),
                                     (self.look_at_list, LIST_SECONDS), (self.tap, LOOK_SECONDS))]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.ending.set()
        for thread in self.threads:
            thread.join()

    def repeat(self, look, seconds):
        while not self.ending.wait(seconds):
            # What is down is watched again when it is back.
            with contextlib.suppress(OSError, sqlite3.Error, json.JSONDecodeError):
                look()

    def changed(self, key, value):
        if self.known.get(key) == value:
            return False
        self.known[key] = value
        return True

    def look_at_report(self):
        with opened(self.mesh.report()) as report:
            for batch, *counts in report.execute(
                    "SELECT batch, items_counted, items_dead, aggregated FROM muster_batch"):
                if self.changed(("counts", batch), counts):
                    self.history.record("committed", batch=batch, items=counts[0], dead=counts[1],
                                        aggregated=counts[2])
            for batch, revision, checksum in report.execute(
                    "SELECT batch, revision, checksum FROM muster_receipt"):
                if self.changed(("receipt", batch, revision), checksum):
                    self.history.record("receipt", batch=batch, revision=revision,
                                        checksum=checksum)

    def look_at_list(self):
        asked = time.monotonic()  # the list may be older than its arrival
        batches, _ = self.clients.list_batches()
        if batches is None:
            return
        until = round(time.monotonic(), 4)
        for batch in batches:
            if self.changed(("state", batch["batch"]), batch["state"]):
                self.history.record("seen", at=asked, until=until, batch=batch["batch"],
                                    request=batch["request_id"], state=batch["state"])
        self.history.record("listed", at=asked, batches=[batch["batch"] for batch in batches])

    def tap(self):
        """Follows the messages to the queues until the server hangs up."""
        host, port = self.mesh.nats_addresses[0].split(":")
        with socket.create_connection((host, int(port)), LOOK_SECONDS) as connection:
            stream = connection.makefile("rb")
            stream.readline()  # INFO
            connection.sendall(
                b'CONNECT {"verbose":false,"headers":true}\r\nSUB %s 1\r\n' % INPUTS.encode())
            connection.settimeout(2.0)
            while not self.ending.is_set():
                words = stream.readline().split()
                if not words:
                    return
                if words[0] == b"PING":
                    connection.sendall(b"PONG\r\n")
                elif words[0] in (b"MSG", b"HMSG"):
                    self.tapped(words, stream)

    def tapped(self, words, stream):
        data = stream.read(int(words[-1]) + 2)[:-2]
        if words[0] == b"HMSG":
            data = data[int(words[-2]):]
        queue = words[1].decode().rpartition(".")[2]
        name = item_of(data)
        if "-in-" in queue and name is not None:
            self.history.record("put", queue=queue, batch=name[0], item=name[1])


def item_of(data):
    """Returns (batch, index) of an encoded work item: the first two fields; None for other data."""
    fields = {}
    place = 0
    for _ in range(2):
        if place >= len(data) or data[place] & 7 != 0:
            break
        field, place = data[place] >> 3, place + 1
        value = shift = 0
        while place < len(data):
            byte, place = data[place], place + 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        fields[field] = value
    # An index of 0 is not written.
    return (fields[1], fields.get(2, 0)) if 1 in fields else None
