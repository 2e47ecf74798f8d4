#!/usr/bin/env bash
# nats-server 2.15.2: a pull that is not to wait (no_wait) on a paused consumer is answered with 404 "No Messages",
# while messages wait.
#
# Guess: the answer tells that the consumer is paused (a 409 of its own, as for other limits), for 404 is the answer of
# a consumer that has nothing left.
# Seen: two messages wait, and num_pending is 2. The consumer is paused. {"batch":1,"no_wait":true} is answered with 404
# "No Messages". Not paused, it is a message.
#
# Who it hurts: jobs that pull until there is nothing left, and then end and report that all is done: a pause that was
# meant to hold them back ends them.
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
pause = {"pause_until": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))}
seen = []
for paused in (True, False):
    now.consumer("S")
    if paused:
        now.ask("s", "work"), now.ask("s", "work")
        assert now.ask("$JS.API.CONSUMER.PAUSE.S.C", json.dumps(pause))["paused"]
        seen.append(now.ask("$JS.API.CONSUMER.INFO.S.C")["num_pending"])
    else:
        now.ask("$JS.API.CONSUMER.PAUSE.S.C", "{}")
    now.send("$JS.API.CONSUMER.MSG.NEXT.S.C", '{"batch":1,"no_wait":true}')
    seen.append(now.receive()[1].decode().split("\r\n")[0])
print(*seen, sep=", ")
now.stop()
PYTHON

version=2.15.2
GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
  { cat "$work/go.log" && exit 1; }
seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
echo "nats-server $version: pending, the answer while it is paused, and after it: $seen"
[ "$seen" = "2, NATS/1.0 404 No Messages, work" ]
