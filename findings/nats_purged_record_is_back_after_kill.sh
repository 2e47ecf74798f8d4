#!/usr/bin/env bash
# nats-server 2.15.2 (2.9.10 does not do it): a record of a stream with max_msgs_per_subject 1, as of a key-value bucket,
# is written twice and purged. When the server is killed and started again, the first version is there once more.
#
# Guess: the purge was answered, and what is gone stays gone; at worst the last version comes back.
# Seen: before the kill there is no message of that subject; after it the one that had been overwritten before the purge.
# With 2.9.10 there is none.
#
# Who it hurts: locks, flags and registrations that are released by a removal of their record: after a power cut they
# are held again, by who held them first. A record that is overwritten with nothing, and stays, does not come back.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/killed.py" << 'PYTHON'
import base64, json, socket, subprocess, sys, time

server, folder = sys.argv[1:]
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

    def ask(self, subject, body):
        self.say(f"PUB {subject} _INBOX.reply {len(body)}\r\n".encode() + body + b"\r\n")
        while True:
            words = self.stream.readline().split()
            if words[0] == b"PING":
                self.say(b"PONG\r\n")
            elif words[0] == b"MSG":
                return json.loads(self.stream.read(int(words[-1]) + 2))

    def record(self):
        answer = self.ask("$JS.API.STREAM.MSG.GET.S", b'{"last_by_subj":"s.lock"}')
        return base64.b64decode(answer["message"]["data"]).decode() if "message" in answer else "none"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.stream.close()


first = Server()
first.ask("$JS.API.STREAM.CREATE.S", json.dumps({
    "name": "S", "subjects": ["s.>"], "max_msgs_per_subject": 1, "storage": "file", "allow_rollup_hdrs": True}).encode())
for other in range(5):
    first.ask(f"s.other{other}", b"1")
first.ask("s.lock", b"first")
first.ask("s.other1", b"2")
first.ask("s.lock", b"second")
time.sleep(2)
assert first.ask("$JS.API.STREAM.PURGE.S", b'{"filter":"s.lock"}')["purged"] == 1
before = first.record()
time.sleep(5)
first.kill()
second = Server()
print(f"{before}, {second.record()}")
second.kill()
PYTHON

expect() { # VERSION SEEN
  local seen
  rm -rf "$work/store"
  GOBIN="$work/$1" go install "github.com/nats-io/nats-server/v2@v$1" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  seen=$(python3 "$work/killed.py" "$work/$1/nats-server" "$work/store")
  echo "nats-server $1, the record after its purge, before and after a kill: $seen"
  [ "$seen" = "$2" ] || { echo "expected: $2" && exit 1; }
}
expect 2.9.10 "none, none"
expect 2.15.2 "none, first"
