#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: to delete a message of a stream that is not there is answered in two
# ways, by where the message was.
#
# Guess: STREAM.MSG.DELETE of a message that is gone is 404 "no message found", as STREAM.MSG.GET of it.
# Seen: of one between two others it is 400 "sequence 2 not found" (10043). Of the first, of the last and of one that
# never was, it is 500 (10057), the code of a store that failed.
#
# Who it hurts: a client that repeats a delete whose answer was lost. It is told of a fault of the server, which it
# takes for a reason to try again.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/delete.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder = sys.argv[1:3]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
process = subprocess.Popen([server, "-js", "-sd", folder, "-a", "127.0.0.1", "-p", str(port)],
                           stderr=subprocess.DEVNULL)
for attempt in range(200):
    try:
        stream = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
        break
    except OSError:
        time.sleep(0.05)
stream.readline()


def ask(subject, body):
    stream.write(f"PUB {subject} _INBOX.reply {len(body)}\r\n{body}\r\n".encode())
    stream.flush()
    while True:
        words = stream.readline().split()
        if words[0] == b"PING":
            stream.write(b"PONG\r\n")
        elif words[0] == b"MSG":
            answer = json.loads(stream.read(int(words[-1])))
            stream.readline()
            return answer


stream.write(b'CONNECT {"verbose":false}\r\nSUB _INBOX.> 1\r\n')
ask("$JS.API.STREAM.CREATE.S", '{"name":"S","subjects":["s"]}')
for text in "abc":
    ask("s", text)
seen = []
for sequence in (2, 2, 1, 1, 3, 3, 9):
    error = ask("$JS.API.STREAM.MSG.DELETE.S", json.dumps({"seq": sequence})).get("error")
    seen.append(f"{error['code']}/{error['err_code']}" if error else "ok")
print(*seen)
process.terminate()
process.wait()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  rm -rf "$work/store"
  seen=$(python3 "$work/delete.py" "$work/$version/nats-server" "$work/store")
  echo "nats-server $version: deletes of 2, 2, 1, 1, 3, 3 and 9 of three messages: $seen"
  [ "$seen" = "ok 400/10043 ok 500/10057 ok 500/10057 500/10057" ]
done
