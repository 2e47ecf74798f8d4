#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12): a repeated acknowledgement that names another delivery number moves a
# consumer's ack floor over messages that are still leased. 2.15.2 does not.
#
# Guess: with explicit acknowledgement, all messages up to `ack_floor.stream_seq` are acknowledged, whatever
# else arrives.
# Seen: five messages are leased, the fourth is acknowledged, and the floor stays at 0. The fourth is then
# acknowledged once more, with the consumer's delivery number 1 in the subject instead of 4: 2.9.10 reports
# the floor at 4, and still counts the first three among four messages that wait for acknowledgement.
# The numbers repeat like that when a server was killed: it hands them out again from the state that it had
# on disk, and clients that reconnect send the acknowledgements of deliveries of before.
#
# Who it hurts: a program that purges, or counts as done, what lies below the floor.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/floor.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder = sys.argv[1:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
process = subprocess.Popen([server, "-js", "-sd", folder, "-a", "127.0.0.1", "-p", str(port)],
                           stderr=subprocess.DEVNULL)
for attempt in range(200):
    try:
        stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
        break
    except OSError:
        time.sleep(0.05)
stream.readline()


def send(subject, body=b"", reply="_INBOX.reply"):
    stream.write(f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")
    stream.flush()


def receive():
    while True:
        words = stream.readline().split()
        if words[0] == b"PING":
            stream.write(b"PONG\r\n")
        elif words[0] == b"MSG":
            return words[3].decode(), stream.read(int(words[-1]) + 2)


def ask(subject, body=b""):
    send(subject, body)
    return json.loads(receive()[1])


def acknowledge(token):
    send(token, b"+ACK")
    receive()
    info = ask("$JS.API.CONSUMER.INFO.S.C")
    return info["ack_floor"]["stream_seq"], info["num_ack_pending"]


stream.write(b'CONNECT {"verbose":false}\r\nSUB _INBOX.> 1\r\n')
ask("$JS.API.STREAM.CREATE.S", b'{"name":"S","subjects":["s"],"retention":"workqueue"}')
ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C",
    b'{"stream_name":"S","config":{"durable_name":"C","ack_policy":"explicit","deliver_policy":"all"}}')
for number in range(5):
    ask("s", b"work")
send("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch":5}')
# $JS.ACK.STREAM.CONSUMER.DELIVERIES.STREAM_SEQUENCE.CONSUMER_SEQUENCE.TIME.PENDING
fourth = [receive()[0] for number in range(5)][3].split(".")
once = acknowledge(".".join(fourth))
fourth[6] = "1"
print("floor %d with %d leased, then floor %d with %d leased" % (*once, *acknowledge(".".join(fourth))))
process.terminate()
process.wait()
PYTHON

expect() { # VERSION WHAT
  GOBIN="$work/$1" go install "github.com/nats-io/nats-server/v2@v$1" > "$work/go.log" 2>&1 || { cat "$work/go.log" && exit 1; }
  local seen
  seen=$(python3 "$work/floor.py" "$work/$1/nats-server" "$work/store-$1")
  echo "nats-server $1: $seen"
  [ "$seen" = "$2" ] || { echo "expected: $2" && exit 1; }
}
expect 2.9.10 "floor 0 with 4 leased, then floor 4 with 4 leased"
expect 2.15.2 "floor 0 with 4 leased, then floor 0 with 4 leased"
