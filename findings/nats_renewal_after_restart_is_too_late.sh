#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: a lease that ended because of a restart (see
# nats_leases_count_from_put_after_restart.sh) is not saved by +WPI (work in progress) as soon as the worker is
# connected again: on 2.15.2 it is over before the first client can say anything.
#
# Guess: a server that starts looks at its leases half a second later at the earliest, so that a worker that
# says +WPI for all it holds as soon as it is connected begins their leases anew.
# Seen: a message waits for 15 s in its stream, is leased for 12 s, and the server is stopped by SIGTERM and
# started again at once. 2.9.10: after +WPI at once, or 0.3 s after the connection, the message comes to another
# pull 12 s later; without it, after half a second to one and a half. After +WPI that comes 3 s later it comes at
# once, as without. 2.15.2: it comes to the first pull at once, whether +WPI came before that pull or not.
#
# Who it hurts: a client that counts on renewing its leases after a restart to keep what it works on. The message
# is done twice: what must count once is to be told by its id.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/restart.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder, when = sys.argv[1:]
LEASE, WAITS = 12, 15
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
while first.ask("$JS.API.CONSUMER.INFO.S.C")["num_ack_pending"] != 1:
    pass
first.stop()
last = Server()
connected = time.monotonic()
if when != "never":
    time.sleep(float(when))
    last.send(token, b"+WPI")
    last.receive()
last.send("$JS.API.CONSUMER.MSG.NEXT.S.C", json.dumps({"batch": 1, "expires": 3 * LEASE * 10**9}).encode())
last.receive()
print(f"{time.monotonic() - connected:.1f}")
last.stop()
PYTHON

expect() { # VERSION AT_LEAST AT_MOST WHEN
  local seen version=$1 least=$2 most=$3 when=$4
  rm -rf "$work/store"
  seen=$(python3 "$work/restart.py" "$work/$version/nats-server" "$work/store" "$when")
  echo "nats-server $version: +WPI $when s after the connection: it comes again $seen s after the connection"
  awk -v seen="$seen" -v least="$least" -v most="$most" 'BEGIN { exit !(seen >= least && seen <= most) }' ||
    { echo "expected: $least to $most s" && exit 1; }
}
for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
done
expect 2.9.10 0 2 never
expect 2.9.10 11 13.5 0
expect 2.9.10 3 4 3
expect 2.15.2 0 1 never
expect 2.15.2 0 1 0
expect 2.15.2 3 4 3
