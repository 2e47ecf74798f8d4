#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: a message that was given back at once (-NAK) is forgotten by
# an ordinary restart, and comes when its lease has run out. Given back with the shortest delay, it comes at
# once.
#
# Guess: -NAK makes a message available again, whatever the server does next; a delay can only make it later.
# Seen: with a lease (ack_wait) of 20 s a message is leased, given back, and the server is stopped by SIGTERM
# and started again. A pull that waits then gets a message of -NAK only after the lease; one of
# -NAK {"delay": 1}, a nanosecond, at once. The delay is stored, the bare -NAK is in memory only.
#
# Who it hurts: a worker that hands its work back when it stops, in a rolling restart that takes the server
# along: the work waits for the whole lease, which is long where work is long.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/restart.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder, word = sys.argv[1:]
LEASE = 20
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]


class Server:
    def __init__(self):
        self.process = subprocess.Popen([server, "-js", "-sd", folder, "-a", "127.0.0.1", "-p", str(port)],
                                        stderr=subprocess.DEVNULL)
        for attempt in range(200):
            try:
                self.stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
                break
            except OSError:
                time.sleep(0.05)
        self.stream.readline()
        self.say(b'CONNECT {"verbose":false}\r\nSUB _INBOX.> 1\r\n')

    def say(self, data):
        self.stream.write(data)
        self.stream.flush()

    def send(self, subject, body=b""):
        self.say(f"PUB {subject} _INBOX.reply {len(body)}\r\n".encode() + body + b"\r\n")

    def receive(self):
        while True:
            words = self.stream.readline().split()
            if words[0] == b"PING":
                self.say(b"PONG\r\n")
            elif words[0] == b"MSG":
                return words[3].decode(), self.stream.read(int(words[-1]) + 2)

    def ask(self, subject, body=b""):
        self.send(subject, body)
        return json.loads(self.receive()[1])

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.stream.close()


first = Server()
first.ask("$JS.API.STREAM.CREATE.S", b'{"name":"S","subjects":["s"],"retention":"workqueue"}')
first.ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", json.dumps({"stream_name": "S", "config": {
    "durable_name": "C", "ack_policy": "explicit", "ack_wait": LEASE * 10**9}}).encode())
first.ask("s", b"work")
leased = time.monotonic()
first.send("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch":1}')
token = first.receive()[0]
first.say(f"PUB {token} {len(word)}\r\n{word}\r\n".encode())
while first.ask("$JS.API.CONSUMER.INFO.S.C").get("num_ack_pending") is None:  # it has read what came before
    pass
first.stop()
second = Server()
second.send("$JS.API.CONSUMER.MSG.NEXT.S.C", json.dumps({"batch": 1, "expires": 2 * LEASE * 10**9}).encode())
second.receive()
print("at once" if time.monotonic() - leased < LEASE / 2 else "after its lease")
second.stop()
PYTHON

expect() { # VERSION WORD WHEN
  local seen
  rm -rf "$work/store"
  seen=$(python3 "$work/restart.py" "$work/$1/nats-server" "$work/store" "$2")
  echo "nats-server $1: $2, and a restart: the message comes $seen"
  [ "$seen" = "$3" ] || { echo "expected: $3" && exit 1; }
}
for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  expect "$version" "-NAK" "after its lease"
  expect "$version" '-NAK {"delay": 1}' "at once"
done
