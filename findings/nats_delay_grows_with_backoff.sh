#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: where a consumer has a backoff, a delay of a repeated delivery is longer
# by the step of that delivery, less the first step.
#
# Guess: -NAK {"delay": …} says when a message comes again; a backoff is for deliveries that nobody answers.
# Seen: with a backoff of 1 s and 6 s, a delay of 2 s ends after 2 s for the first delivery, but after 7 s for the
# second. With one of 6 s and 1 s, it ends at once for the second.
#
# Who it hurts: workers that know when a retry makes sense, as after a Retry-After, on a consumer whose backoff is for
# workers that die: the later the retry, the longer its message waits beyond what it was asked for.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/delay.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder, first, second, deliveries = *sys.argv[1:3], *map(int, sys.argv[3:])
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


def send(subject, body, reply="_INBOX.reply "):
    stream.write(f"PUB {subject} {reply}{len(body)}\r\n{body}\r\n".encode())
    stream.flush()


def receive():  # the subject that a message is to be acknowledged at, and its bytes
    while True:
        words = stream.readline().decode().split()
        if words[0] == "PING":
            stream.write(b"PONG\r\n")
        elif words[0] == "MSG":
            return words[3], stream.read(int(words[-1]) + 2)


def ask(subject, **body):
    send(subject, json.dumps(body))
    assert "error" not in json.loads(receive()[1])


def pull():
    send("$JS.API.CONSUMER.MSG.NEXT.S.C", json.dumps({"batch": 1, "expires": 60 * 10**9}))
    return receive()[0]


stream.write(b'CONNECT {"verbose":false}\r\nSUB _INBOX.> 1\r\n')
ask("$JS.API.STREAM.CREATE.S", name="S", subjects=["s"])
ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", stream_name="S", config={
    "durable_name": "C", "ack_policy": "explicit", "max_deliver": 9, "backoff": [first * 10**9, second * 10**9]})
ask("s")
for delivery in range(deliveries):
    token = pull()
given_back = time.monotonic()
send(token, '-NAK {"delay": 2000000000}', "")
pull()
print("%d s" % (time.monotonic() - given_back))
process.terminate()
process.wait()
PYTHON

expect() { # VERSION FIRST SECOND DELIVERIES SEEN
  local seen
  rm -rf "$work/store"
  seen=$(python3 "$work/delay.py" "$work/$1/nats-server" "$work/store" "$2" "$3" "$4")
  echo "nats-server $1: a backoff of $2 s and $3 s: a delay of 2 s for delivery $4 ends after $seen"
  [ "$seen" = "$5" ] || { echo "expected: $5" && exit 1; }
}
for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  expect "$version" 1 6 1 "2 s"
  expect "$version" 1 6 2 "7 s"
  expect "$version" 6 1 2 "0 s"
done
