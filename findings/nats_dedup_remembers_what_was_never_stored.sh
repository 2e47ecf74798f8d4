#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: a stream with retention "interest" remembers the id (Nats-Msg-Id) of a
# message that it did not store because it had no consumer. Put again when there is a consumer, it is a duplicate.
#
# Guess: what was not stored is no duplicate of anything; a producer that repeats a message until a consumer is there
# gets it stored then.
# Seen: without a consumer a message with an id is answered like a stored one, with sequence 1, and the stream is empty.
# A consumer is made, and the same put is a duplicate: of sequence 0 with 2.9.10, of sequence 1 with 2.15.2. The
# consumer gets nothing. Put without an id, it gets the message.
#
# Who it hurts: producers that start before the consumers of a new installation, and repeat what has had no effect. For
# the whole duplicate window each try is answered with success and none reaches anybody.
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
now.stream_of("S", subjects=["s"], retention="interest")
first = now.ask("s", "text", Nats_Msg_Id="one")
stored = now.messages_in("S")
now.consumer("S")
again = now.ask("s", "text", Nats_Msg_Id="one")
got = now.pull("S")[0]
now.ask("s", "text")
plain = now.pull("S")[0]
print(f"seq {first['seq']} of {stored} stored, then seq {again['seq']} duplicate {again.get('duplicate')},",
      "pulled" if got else "nothing to pull;", "without an id", "pulled" if plain else "nothing to pull")
now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: $seen"
  of=$([ "$version" = 2.9.10 ] && echo 0 || echo 1)
  [ "$seen" = "seq 1 of 0 stored, then seq $of duplicate True, nothing to pull; without an id pulled" ]
done
