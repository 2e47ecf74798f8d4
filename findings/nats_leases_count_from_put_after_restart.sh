#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: after an ordinary restart the lease of a message (ack_wait)
# counts from when the message was put, not from when a worker got it, unless the worker has said +WPI since.
#
# Guess: a restart makes no lease shorter but by the second that the server may round: it writes when it
# delivered the message, or begins the lease anew.
# Seen: a message waits for 5 s in its stream, is leased for 12 s, and the server is stopped by SIGTERM and
# started again at once. It comes to another pull after 7 s and less. If the worker has said +WPI (work in
# progress) in between, it comes after 11 to 12 s; without the restart, after 12 s. With each delivery the server
# stores the time of the message, in whole seconds; with +WPI, that of the moment. What waited for longer than
# its lease comes again as soon as the server has looked at it, a second after its start.
#
# Who it hurts: workers on a backlog while the server is upgraded: all that they have begun is given to others
# at once, and done twice.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/restart.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder, *does = sys.argv[1:]
LEASE, WAITS = 12, 5
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
time.sleep(WAITS)
first.send("$JS.API.CONSUMER.MSG.NEXT.S.C", b'{"batch":1}')
token = first.receive()[0]
leased = time.monotonic()
if "+WPI" in does:
    first.send(token, b"+WPI")
    first.receive()
if "restart" in does:
    while first.ask("$JS.API.CONSUMER.INFO.S.C")["num_ack_pending"] != 1:
        pass
    first.stop()
    last = Server()
else:
    last = first
last.send("$JS.API.CONSUMER.MSG.NEXT.S.C", json.dumps({"batch": 1, "expires": 3 * LEASE * 10**9}).encode())
last.receive()
print(f"{time.monotonic() - leased:.1f}")
last.stop()
PYTHON

expect() { # VERSION AT_LEAST AT_MOST WHAT...
  local seen version=$1 least=$2 most=$3
  shift 3
  rm -rf "$work/store"
  seen=$(python3 "$work/restart.py" "$work/$version/nats-server" "$work/store" "$@")
  echo "nats-server $version: a lease of 12 s on a message that waited for 5 s; then $*: it ends after $seen s"
  awk -v seen="$seen" -v least="$least" -v most="$most" 'BEGIN { exit !(seen >= least && seen <= most) }' ||
    { echo "expected: $least to $most s" && exit 1; }
}
for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  expect "$version" 12 12.9 nothing
  expect "$version" 5.5 8 restart
  expect "$version" 10.9 12.9 +WPI restart
done
