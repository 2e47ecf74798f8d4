#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: a message that was given back with a delay comes sooner or
# later by as much as the consumer's ack_wait is made shorter or longer meanwhile.
#
# Guess: -NAK {"delay": …} says when a message comes again; ack_wait is about messages that are with a worker.
# Seen: with an ack_wait of 30 s a message is given back for 20 s, and ack_wait is set to 5 s: it comes at
# once. With one of 1 s it is given back for 2 s, and ack_wait is set to 6 s: it comes after 7 s. The server
# keeps the delay as the time of a delivery that was ack_wait before the message is due.
#
# Who it hurts: a program that changes how long its workers may be silent, while retries wait.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/delay.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder, before, after, delay = *sys.argv[1:3], *map(int, sys.argv[3:])
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


def send(subject, body=b""):
    stream.write(f"PUB {subject} _INBOX.reply {len(body)}\r\n".encode() + body + b"\r\n")
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


def wait_for_acks(seconds):
    ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", json.dumps({"stream_name": "S", "config": {
        "durable_name": "C", "ack_policy": "explicit", "ack_wait": seconds * 10**9}}).encode())


stream.write(b'CONNECT {"verbose":false}\r\nSUB _INBOX.> 1\r\n')
ask("$JS.API.STREAM.CREATE.S", b'{"name":"S","subjects":["s"],"retention":"workqueue"}')
wait_for_acks(before)
ask("s", b"work")
send("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch":1}')
token = receive()[0]
given_back = time.monotonic()
word = json.dumps({"delay": delay * 10**9})
stream.write(f"PUB {token} {len(word) + 5}\r\n-NAK {word}\r\n".encode())
stream.flush()
wait_for_acks(after)
send("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch":1,"expires":60000000000}')
receive()
print("%d s" % (time.monotonic() - given_back))
process.terminate()
process.wait()
PYTHON

expect() { # VERSION BEFORE AFTER DELAY SEEN
  local seen
  rm -rf "$work/store"
  seen=$(python3 "$work/delay.py" "$work/$1/nats-server" "$work/store" "$2" "$3" "$4")
  echo "nats-server $1: ack_wait $2 s, then $3 s: a delay of $4 s ends after $seen"
  [ "$seen" = "$5" ] || { echo "expected: $5" && exit 1; }
}
for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  expect "$version" 30 5 20 "0 s"
  expect "$version" 1 6 2 "7 s"
done
