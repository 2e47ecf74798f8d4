#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: a delay of -NAK whose number has a point or an exponent is none: the
# message comes again at once. No answer or advisory says so.
#
# Guess: 2000000000, 2000000000.0 and 2e9 are one number in JSON, and a delay that cannot be read is answered with an
# error where the -NAK asks for an answer.
# Seen: -NAK {"delay":2000000000} comes after 2 s. With 2000000000.0, with 2e9 and with the text "2s" it comes at once,
# and the answer to the -NAK is the usual one, empty. -NAK 2s, without JSON, is 2 s with both.
#
# Who it hurts: clients that work the delay out in floating point: Python's json writes 2.0 * 10**9 as 2000000000.0. A
# handler that fails is then tried again without a pause until its attempts are used up.
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

    def consumer(self, stream, **config):
        config = {"durable_name": "C", "ack_policy": "explicit", **config}
        return self.ask(f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.C",
                        json.dumps({"stream_name": stream, "config": config}))

    def pull(self, stream, seconds=1):  # the next message's sequence and the subject of its acknowledgement, or none
        self.send(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.C", json.dumps({"batch": 1, "expires": int(seconds * 10**9)}))
        words, data = self.receive()
        return (0, "") if words[0] == "HMSG" and b"NATS/1.0 4" in data else (int(words[3].split(".")[5]), words[3])

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.stream.close()


now = Server()
now.stream_of("S", subjects=["s"])
now.consumer("S", ack_wait=20 * 10**9)
now.ask("s", "work")
subject = now.pull("S")[1]
seen = []
for delay in ('{"delay":2000000000}', '{"delay":2000000000.0}', '{"delay":2e9}', '{"delay":"2s"}', "2s"):
    start = time.monotonic()
    now.send(subject, f"-NAK {delay}")
    assert now.receive()[1] == b"\r\n"
    subject = now.pull("S", 10)[1]
    seen.append("later" if time.monotonic() - start > 1.9 else "at once")
print(*seen, sep=", ")
now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: 2000000000, 2000000000.0, 2e9, \"2s\" and 2s without JSON: $seen"
  [ "$seen" = "later, at once, at once, at once, later" ]
done
