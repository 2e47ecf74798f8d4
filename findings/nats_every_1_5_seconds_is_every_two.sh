#!/usr/bin/env bash
# nats-server 2.15.2: a schedule "@every 1.5s" puts a message each 2 s, and "@every 1.4s" one each second.
#
# Guess: "@every" takes the durations of Go, of a second at least, so 1.5s is each 1.5 s, and 1.4s each 1.4 s.
# Seen: gaps of 2 s and of 1 s. Both are accepted. Each next time is the last one rounded to a whole second, plus the
# duration, so the fraction is lost or taken twice; 2s and 90s are right.
#
# Who it hurts: whoever samples or polls at a rate that is no whole second: 2.5s are 3 s, so a sixth of the samples is
# missing, and a service that allows 43 calls a minute (1.4s) gets 60.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/gaps.py" << 'PYTHON'
import json, socket, subprocess, sys, time

server, folder, interval = sys.argv[1:4]
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


def send(subject, body="", headers=""):
    head = f"NATS/1.0\r\n{headers}\r\n" if headers else ""
    sizes = f"{len(head)} {len(head + body)}" if head else len(body)
    stream.write(f"{'H' if head else ''}PUB {subject} _INBOX.reply {sizes}\r\n{head}{body}\r\n".encode())
    stream.flush()


def receive():
    while True:
        words = stream.readline().decode().split()
        if words[0] == "PING":
            stream.write(b"PONG\r\n")
            stream.flush()
        elif words[0] in ("MSG", "HMSG"):
            return stream.read(int(words[-1]) + 2).decode()


def ask(subject, body="", headers=""):
    send(subject, body, headers)
    assert "error" not in json.loads(receive())


def next_second():  # of the minute: when the schedule comes next, as its latest message says
    send("$JS.API.CONSUMER.MSG.NEXT.S.C", '{"batch":1,"expires":30000000000}')
    words = next(line for line in receive().split("\r\n") if line.startswith("Nats-Schedule-Next"))
    return float(words.rsplit(":", 1)[1].rstrip("Z"))


stream.write(b'CONNECT {"verbose":false,"headers":true}\r\nSUB _INBOX.> 1\r\n')
ask("$JS.API.STREAM.CREATE.S", '{"name":"S","subjects":["s.>"],"allow_msg_schedules":true}')
ask("$JS.API.CONSUMER.DURABLE.CREATE.S.C", json.dumps({"stream_name": "S", "config": {
    "durable_name": "C", "ack_policy": "none", "filter_subject": "s.target"}}))
ask("s.schedule", "work", f"Nats-Schedule: @every {interval}\r\nNats-Schedule-Target: s.target\r\n")
next_second()
times = [next_second() for _ in range(4)]
print(*[f"{(later - earlier) % 60:.1f}" for earlier, later in zip(times, times[1:])])
process.terminate()
process.wait()
PYTHON

GOBIN=$work go install "github.com/nats-io/nats-server/v2@v2.15.2" > "$work/go.log" 2>&1 ||
  { cat "$work/go.log" && exit 1; }
expect() { # INTERVAL GAPS
  local seen
  rm -rf "$work/store"
  seen=$(python3 "$work/gaps.py" "$work/nats-server" "$work/store" "$1")
  echo "nats-server 2.15.2: @every $1: seconds between messages: $seen"
  [ "$seen" = "$2" ] || { echo "expected: $2" && exit 1; }
}
expect 1.4s "1.0 1.0 1.0"
expect 1.5s "2.0 2.0 2.0"
expect 2s "2.0 2.0 2.0"
expect 2.5s "3.0 3.0 3.0"
