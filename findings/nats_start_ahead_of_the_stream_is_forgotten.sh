#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12): a consumer that is to start at a sequence that its stream has not reached yet
# starts at the next message instead. 2.15.2 waits for that sequence.
#
# Guess: deliver_policy by_start_sequence delivers nothing below opt_start_seq, whenever it is put.
# Seen: a stream holds message 1, and a consumer is made with opt_start_seq 5, as its information says. Messages 2 to 6
# are put. 2.9.10 delivers 2, 3, 4, 5, 6; 2.15.2 delivers 5, 6.
#
# Who it hurts: a reader that keeps its place in its own database and goes on there after the stream was restored from
# an older copy. It gets events of which it thinks that it has seen them, and applies them.
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
now.ask("s", "1")
now.consumer("S", deliver_policy="by_start_sequence", opt_start_seq=5)
for number in range(2, 7):
    now.ask("s", str(number))
got = [now.pull("S")[0]]
while got[-1] != 6:
    got.append(now.pull("S")[0])
print(*got)
now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: a consumer that is to start at 5 gets $seen"
  [ "$seen" = "$([ "$version" = 2.9.10 ] && echo "2 3 4 5 6" || echo "5 6")" ]
done
