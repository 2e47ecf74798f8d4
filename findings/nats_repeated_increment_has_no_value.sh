#!/usr/bin/env bash
# nats-server 2.15.2: a repeated increment of a counter (a stream with allow_msg_counter) is answered as a duplicate
# without the counter's value, which the first answer has.
#
# Guess: with an id (Nats-Msg-Id) an increment is safe to repeat: the second answer is the first one, and says that it
# is a duplicate.
# Seen: Nats-Incr 5 is answered with seq 1 and val "5". The same with the same id is answered with seq 1 and
# "duplicate", and has no val. The counter has counted once.
#
# Who it hurts: programs that draw numbers (of invoices, of items) from a counter. The one whose first answer was lost
# does not learn its number: the last value may be another one's by then, and message 1 may be gone.
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
now.stream_of("S", subjects=["s"], allow_msg_counter=True, allow_direct=True)
answers = [now.ask("s", Nats_Incr="5", Nats_Msg_Id="one"), now.ask("s", Nats_Incr="5", Nats_Msg_Id="one"),
           now.ask("s", Nats_Incr="2")]
print("; ".join(f"seq {answer['seq']} val {answer.get('val')}{' duplicate' if answer.get('duplicate') else ''}"
                for answer in answers))
now.stop()
PYTHON

version=2.15.2
GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
  { cat "$work/go.log" && exit 1; }
seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
echo "nats-server $version: 5, the same once more, and 2: $seen"
[ "$seen" = "seq 1 val 5; seq 1 val None duplicate; seq 2 val 7" ]
