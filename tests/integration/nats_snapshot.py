# SPDX-License-Identifier: Apache-2.0
"""Backup and restore of a stream of a running NATS server: the requests behind `nats stream backup` and
`nats stream restore`."""

import json

from nats_wire import NatsWire

CHUNK_BYTES = 64 * 1024


def take_stream(address, stream):
    """(configuration and state, the bytes of the snapshot)"""
    wire = NatsWire(address)
    try:
        wire.say(b"SUB test.snapshot 2\r\nSUB test.answer 3\r\n")
        request = json.dumps({"deliver_subject": "test.snapshot", "chunk_size": CHUNK_BYTES}).encode()
        wire.say(b"PUB $JS.API.STREAM.SNAPSHOT.%s test.answer %d\r\n%s\r\n" %
                 (stream.encode(), len(request), request))
        answer, chunks, ended = None, [], False
        while answer is None or not ended:  # the first chunk may come before the answer
            subscription, reply, data = next_message(wire)
            if subscription == "3":
                answer = json.loads(data)
            elif data:
                chunks.append(data)
                wire.say(b"PUB %s 0\r\n\r\n" % reply.encode())
            else:
                ended = True
        return {"config": answer["config"], "state": answer["state"]}, b"".join(chunks)
    finally:
        wire.close()


def next_message(wire):
    """(the number of the subscription, where to acknowledge it, the data); no data is the end."""
    while True:
        words = wire.line().split()
        if words[0] == "PING":
            wire.say(b"PONG\r\n")
        elif words[0] == "-ERR":
            raise AssertionError(words)
        elif words[0] == "MSG":
            reply = words[3] if len(words) == 5 else ""
            return words[2], reply, wire.stream.read(int(words[-1]) + 2)[:-2]
        elif words[0] == "HMSG":  # the end of newer servers has a status
            wire.stream.read(int(words[-1]) + 2)
            return words[2], "", b""


def restore_stream(address, stream, snapshot):
    about, data = snapshot
    wire = NatsWire(address)
    try:
        began = wire.request(f"$JS.API.STREAM.RESTORE.{stream}", json.dumps(about).encode())
        subject = began["deliver_subject"].encode()
        wire.say(b"SUB test.acknowledged 3\r\n")
        for start in range(0, len(data), CHUNK_BYTES):
            chunk = data[start:start + CHUNK_BYTES]
            wire.say(b"PUB %s test.acknowledged %d\r\n%s\r\n" % (subject, len(chunk), chunk))
            next_message(wire)
        return wire.request(subject.decode(), b"")  # the end; the answer is the stream that was made
    finally:
        wire.close()
