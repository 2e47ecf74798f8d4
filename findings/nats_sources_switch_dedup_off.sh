#!/usr/bin/env bash
# nats-server 2.15.2: a stream that is made with sources and without a duplicate_window has none. The ids (Nats-Msg-Id)
# of messages that are put to its own subjects count for nothing then, either. With 2.9.10 (of Debian 12) it has the two
# minutes of all streams.
#
# Guess: a stream without duplicate_window gets the default, two minutes, whatever else it has.
# Seen: a stream has subjects and another stream as a source, and gets a message with an id twice. 2.9.10 answers the
# second with "duplicate". 2.15.2 stores both; the stream's information has no duplicate_window. Without the source, or
# with a duplicate_window of two minutes that is asked for, 2.15.2 knows the duplicate.
#
# Who it hurts: a producer that repeats puts and relies on their ids, when the stream that it puts to is made anew with
# a source beside its subjects: for a move, or to collect what sites send. Each repeated put is there twice.
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
now.stream_of("Site", subjects=["site"])
for name, more in (("plain", {}), ("sourced", {"sources": [{"name": "Site"}]}),
                   ("asked", {"sources": [{"name": "Site"}], "duplicate_window": 120 * 10**9})):
    now.stream_of(name, subjects=[name], **more)
    for attempt in range(2):
        answer = now.ask(name, "text", Nats_Msg_Id="one")
    seen.append(f"{name}: {'duplicate' if answer.get('duplicate') else 'stored twice'}")
print(", ".join(seen))
now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: $seen"
  sourced=$([ "$version" = 2.9.10 ] && echo duplicate || echo "stored twice")
  [ "$seen" = "plain: duplicate, sourced: $sourced, asked: duplicate" ]
done
