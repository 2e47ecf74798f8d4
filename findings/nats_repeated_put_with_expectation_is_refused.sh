#!/usr/bin/env bash
# nats-server 2.15.2: a put with an id (Nats-Msg-Id) and an expected sequence that is repeated word for word is refused
# for the sequence. 2.9.10 (of Debian 12) says that it is a duplicate.
#
# Guess: an id makes a put safe to repeat: the second one is answered with the first one's sequence and "duplicate",
# before anything else about it is looked at.
# Seen: a first put with an id and Nats-Expected-Last-Sequence 0 has sequence 1. The same again: 2.9.10 answers
# sequence 1, duplicate. 2.15.2 answers 400 "wrong last sequence: 1" (10071). With Nats-Expected-Last-Subject-Sequence
# it is the same.
#
# Who it hurts: a writer whose answer was lost, and that repeats its put. It is told that another writer was faster,
# where the message before it is its own; it gives up its work, or does it anew on top.
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
for name in ("Nats_Expected_Last_Sequence", "Nats_Expected_Last_Subject_Sequence"):
    now.stream_of(name, subjects=[name])
    for attempt in range(2):
        answer = now.ask(name, "text", **{"Nats_Msg_Id": "one", name: "0"})
        error = answer.get("error")
        seen.append(f"{error['code']}/{error['err_code']}" if error else
                    f"seq {answer['seq']}{' duplicate' if answer.get('duplicate') else ''}")
print(", ".join(seen))
now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: put twice, by the stream's and by the subject's sequence: $seen"
  case $version in
    2.9.10) [ "$seen" = "seq 1, seq 1 duplicate, seq 1, seq 1 duplicate" ] ;;
    *) [ "$seen" = "seq 1, 400/10071, seq 1, 400/10071" ] ;;
  esac
done
