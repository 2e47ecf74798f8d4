#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: a purge up to a sequence that a stream has not reached yet makes the
# next message get that sequence. With a subject beside it, it does not.
#
# Guess: STREAM.PURGE with "seq" removes what is there below it. Numbers go on after the last one, for ever without gaps
# but for what is deleted.
# Seen: five messages, and a purge with seq 100: five are purged, the stream's last_seq is 99, and the next message is
# number 100. With the stream's only subject as a filter the last_seq is 5, and the next message is number 6.
#
# Who it hurts: a program that purges below its checkpoint, on a stream that was restored from an older copy or made
# anew: its numbers leap. Whoever tells lost messages by gaps in the numbers finds ninety-four of them.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/seen.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder = sys.argv[1:3]
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
        self.say(b'CONNECT {"verbose":false,"headers":true}\r\nSUB _INBOX.> 1\r\n')

    def say(self, data):
        self.stream.write(data)
        self.stream.flush()

    def send(self, subject, body="", **headers):
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"NATS/1.0\r\n{head}\r\n" if head else ""
        sizes = f"{len(head)} {len(head + body)}" if head else len(body)
        self.say(f"{'H' if head else ''}PUB {subject} _INBOX.reply {sizes}\r\n{head}{body}\r\n".encode())

    def receive(self):  # the words of a message's first line, and its bytes
        while True:
            words = self.stream.readline().decode().split()
            if words[0] == "PING":
                self.say(b"PONG\r\n")
            elif words[0] in ("MSG", "HMSG"):
                return words, self.stream.read(int(words[-1]) + 2)

    def ask(self, subject, body="", **headers):
        self.send(subject, body, **headers)
        return json.loads(self.receive()[1])

    def stream_of(self, name, **config):
        return self.ask(f"$JS.API.STREAM.CREATE.{name}", json.dumps({"name": name, **config}))

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.stream.close()


now = Server()
seen = []
for name, purge in (("Plain", {"seq": 100}), ("Filtered", {"seq": 100, "filter": "Filtered"})):
    now.stream_of(name, subjects=[name])
    for number in range(5):
        now.ask(name, "text")
    purged = now.ask(f"$JS.API.STREAM.PURGE.{name}", json.dumps(purge))["purged"]
    seen.append(f"{purged} purged, next {now.ask(name, 'text')['seq']}")
print("; with a filter ".join(seen))
now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: of messages 1 to 5 below 100: $seen"
  [ "$seen" = "5 purged, next 100; with a filter 5 purged, next 6" ]
done
