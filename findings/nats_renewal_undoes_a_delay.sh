#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: +WPI (work in progress) for a message that was given back with a delay
# replaces the delay by a whole lease (ack_wait).
#
# Guess: who has given a message back has no lease to renew: a +WPI that is late is ignored, as one for a message that
# is acknowledged is.
# Seen: a lease is 6 s. A message is given back for 2 s, and comes to a waiting pull after 2 s. With a +WPI at the first
# second, it comes after 7 s.
#
# Who it hurts: workers that renew their leases in a thread of their own. A renewal that crosses the -NAK, as one in
# some thousands does, makes a retry of seconds one of the whole lease, which is long where work is long.
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
now.consumer("S", ack_wait=6 * 10**9)
now.ask("s", "work")
subject = now.pull("S")[1]
nak = json.dumps({"delay": 2 * 10**9})
now.say(f"PUB {subject} {5 + len(nak)}\r\n-NAK {nak}\r\n".encode())
start = time.monotonic()
time.sleep(1)
if sys.argv[3] == "+WPI":
    now.say(f"PUB {subject} 4\r\n+WPI\r\n".encode())
assert now.pull("S", 30)[0] == 1
print("after the delay" if time.monotonic() - start < 5.5 else "after a lease")
now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  for word in none +WPI; do
    rm -rf "$work/store"
    seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store" "$word")
    echo "nats-server $version: given back, then a word ($word): the message comes $seen"
    [ "$seen" = "$([ "$word" = +WPI ] && echo "after a lease" || echo "after the delay")" ]
  done
done
