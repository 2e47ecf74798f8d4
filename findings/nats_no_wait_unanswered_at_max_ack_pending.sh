#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: a pull that is not to wait (no_wait) gets no answer at all while
# the consumer has its max_ack_pending of leased messages. With a time limit beside it, it is answered.
#
# Guess: no_wait is answered at once, with a message or with a status, whatever keeps messages from coming;
# a limit that keeps them from coming is status 409.
# Seen: max_ack_pending is 2, and two of three messages are leased. {"batch":1,"no_wait":true} is not answered
# within 3 s; {"batch":1,"no_wait":true,"expires":…} is, with status 408. On an empty stream the first is
# answered at once, with 404.
#
# Who it hurts: a client that pulls with no_wait and waits for the status takes a full consumer for a server
# that is gone.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/pull.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder = sys.argv[1:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
process = subprocess.Popen([server, "-js", "-sd", folder, "-a", "127.0.0.1", "-p", str(port)],
                           stderr=subprocess.DEVNULL)
for attempt in range(200):
    try:
        connection = socket.create_connection(("127.0.0.1", port))
        break
    except OSError:
        time.sleep(0.05)
stream = connection.makefile("rwb")
stream.readline()
stream.write(b'CONNECT {"verbose":false,"headers":true}\r\nSUB _INBOX.> 1\r\n')


def send(subject, body=b"", reply="_INBOX.reply"):
    stream.write(f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")
    stream.flush()


def receive():
    """(subject, text, status) of a message"""
    while True:
        words = stream.readline().split()
        if words[0] == b"PING":
            stream.write(b"PONG\r\n")
        elif words[0] == b"MSG":
            return words[1].decode(), stream.read(int(words[-1]) + 2), None
        elif words[0] == b"HMSG":
            return words[1].decode(), b"", stream.read(int(words[-1]) + 2).split()[1].decode()


def ask(subject, body=b""):
    send(subject, body)
    return json.loads(receive()[1])


def pull(inbox, **options):
    """The status of the answer, or that there is none within 3 s."""
    send("$JS.API.CONSUMER.MSG.NEXT.S.C", json.dumps({"batch": 1, **options}).encode(), f"_INBOX.{inbox}")
    time.sleep(3)
    send("$JS.API.INFO", b"", "_INBOX.info")
    seen = "no answer"
    while True:
        subject, _, status = receive()
        if subject == "_INBOX.info":
            return seen
        if subject == f"_INBOX.{inbox}":
            seen = status


ask("$JS.API.STREAM.CREATE.S", b'{"name":"S","subjects":["s"],"retention":"workqueue"}')
ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", b'{"stream_name":"S","config":{"durable_name":"C",'
    b'"ack_policy":"explicit","max_ack_pending":2}}')
seen = ["empty: " + pull("empty", no_wait=True)]
for number in range(3):
    ask("s", b"work")
send("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch":2}')
receive(), receive()
seen.append("full: " + pull("full", no_wait=True))
seen.append("full, with a limit: " + pull("limit", no_wait=True, expires=10**7))
print("; ".join(seen))
process.terminate()
process.wait()
PYTHON

expect() { # VERSION WHAT
  GOBIN="$work/$1" go install "github.com/nats-io/nats-server/v2@v$1" > "$work/go.log" 2>&1 || { cat "$work/go.log" && exit 1; }
  local seen
  seen=$(python3 "$work/pull.py" "$work/$1/nats-server" "$work/store-$1")
  echo "nats-server $1: $seen"
  [ "$seen" = "$2" ] || { echo "expected: $2" && exit 1; }
}
expect 2.9.10 "empty: 404; full: no answer; full, with a limit: 408"
expect 2.15.2 "empty: 404; full: no answer; full, with a limit: 408"
