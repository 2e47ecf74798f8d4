#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12): to purge one subject of a stream makes its consumers skip the messages of all other
# subjects that are waiting then. They stay in the stream. 2.15.2 skips nothing.
#
# Guess: STREAM.PURGE with a filter removes the messages of that subject, and nothing happens to others.
# Seen: a stream has a.1, b.2 and a.3 (the number is the sequence), and a consumer of all of them that has read nothing.
# After a purge of subject a the stream has one message, b.2. With 2.15.2 the consumer gets it. With 2.9.10 num_pending
# is 0, the ack floor is 3, and the consumer gets only what is put from then on. It is the same if b.2 was leased: it
# counts as acknowledged.
#
# Who it hurts: whoever cancels the work of one customer or one batch by its subject. The work of all the others is lost
# to the workers, and in a work queue stays in the stream for ever.
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
now.stream_of("S", subjects=["a", "b"])
now.consumer("S")
for subject in ("a", "b", "a"):
    now.ask(subject, "work")
now.ask("$JS.API.STREAM.PURGE.S", '{"filter":"a"}')
info = now.ask("$JS.API.CONSUMER.INFO.S.C")
stored = now.messages_in("S")
got = now.pull("S")[0]
now.ask("b", "more")
print(f"{stored} stored, {info['num_pending']} pending, ack floor {info['ack_floor']['stream_seq']},",
      f"pulled {got or 'nothing'}, after another put {now.pull('S')[0]}")
now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: after a purge of the messages around message 2: $seen"
  case $version in
    2.9.10) [ "$seen" = "1 stored, 0 pending, ack floor 3, pulled nothing, after another put 4" ] ;;
    *) [ "$seen" = "1 stored, 1 pending, ack floor 1, pulled 2, after another put 4" ] ;;
  esac
done
