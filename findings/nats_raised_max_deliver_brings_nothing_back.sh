#!/usr/bin/env bash
# nats-server 2.15.2: a message that was delivered max_deliver times does not come again when max_deliver is raised. It
# stays in its work queue, where no count of the consumer shows it. With 2.9.10 (of Debian 12) it comes again.
#
# Guess: max_deliver says how often a message is delivered; with a higher one, what waits unacknowledged is delivered
# again.
# Seen: a work queue's consumer has max_deliver 1. A message is pulled, and its lease ends. max_deliver is set to 3.
# 2.9.10 counts it under num_ack_pending all the time, and delivers it. 2.15.2 has num_pending 0 and num_ack_pending 0,
# and delivers nothing; the stream holds the message.
#
# Who it hurts: the operator who mends the handler and gives the failed messages more tries, as worked before. And a
# scaler or an alarm that reads the consumer's counts: both are 0 with work left in the queue.
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

    def messages_in(self, name):
        return self.ask(f"$JS.API.STREAM.INFO.{name}")["state"]["messages"]

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
now.stream_of("S", subjects=["s"], retention="workqueue")
lease = 10**9 // 2
now.consumer("S", max_deliver=1, ack_wait=lease)
now.ask("s", "work")
now.pull("S")
time.sleep(2)
info = now.ask("$JS.API.CONSUMER.INFO.S.C")
now.consumer("S", max_deliver=3, ack_wait=lease)
got = now.pull("S", 2)[0]
print(f"{info['num_pending']} pending, {info['num_ack_pending']} unacknowledged, then",
      "it comes again" if got else "nothing comes", f"of {now.messages_in('S')} in the stream")
now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: max_deliver is used up: $seen"
  case $version in
    2.9.10) [ "$seen" = "0 pending, 1 unacknowledged, then it comes again of 1 in the stream" ] ;;
    *) [ "$seen" = "0 pending, 0 unacknowledged, then nothing comes of 1 in the stream" ] ;;
  esac
done
