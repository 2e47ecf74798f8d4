#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: a restart forgets the ids (Nats-Msg-Id) of all messages that are gone,
# however long the stream's duplicate window still is. Before the restart they are refused.
#
# Guess: within duplicate_window a put with the id of an earlier one is a duplicate, whether the message is still there
# or not; the window outlives a restart, as messages do.
# Seen: with a window of ten minutes a work queue gets two messages with ids, and the first is acknowledged, so that it
# is gone. Put again, both are duplicates. The server is stopped by SIGTERM and started again at once: the second is
# still a duplicate, the first is stored once more, and a worker gets it. At its start the server reads the ids from
# the messages that it finds.
#
# Who it hurts: a producer whose put was not answered because the server was just restarted, and that repeats it, as
# one with ids should. What was quickly done meanwhile is done again.
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


server_now = Server()


def repeat():
    again = [server_now.ask("s", "bill", Nats_Msg_Id=name).get("duplicate", False) for name in ("done", "waits")]
    return " ".join("duplicate" if is_known else "stored" for is_known in again)


server_now.stream_of("S", subjects=["s"], retention="workqueue", duplicate_window=600 * 10**9)
server_now.consumer("S")
for name in ("done", "waits"):
    server_now.ask("s", "bill", Nats_Msg_Id=name)
server_now.send(server_now.pull("S")[1], "+ACK")
server_now.receive()
before = repeat()
server_now.stop()
server_now = Server()
print(f"{before}, after a restart {repeat()}")
server_now.stop()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: a message that is done and one that waits, put again: $seen"
  [ "$seen" = "duplicate duplicate, after a restart stored duplicate" ]
done
