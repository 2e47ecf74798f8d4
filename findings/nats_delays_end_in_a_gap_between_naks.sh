#!/usr/bin/env bash
# nats-server 2.9.10 (of Debian 12) and 2.15.2: while messages are given back with a delay (-NAK {"delay": …}), one each
# few milliseconds, no delay of the consumer ends, and no lease either.
#
# Guess: a message that was given back for half a second comes after half a second, whatever happens to others.
# Seen: with one -NAK of another message each millisecond it comes when none has arrived for 10 ms, be it seconds later:
# each -NAK with a delay sets the consumer's only timer to 10 ms again. A stream of +WPI does not do that.
#
# Who it hurts: a queue that holds back its messages because a service is down. With more than a hundred a second, those
# that are due, and those of workers that died, wait until the stream has a gap; no number of the consumer tells of it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/seen.py" << 'PYTHON'
import json, select, socket, subprocess, sys, time

server, folder, word = sys.argv[1:4]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
process = subprocess.Popen([server, "-js", "-sd", folder, "-a", "127.0.0.1", "-p", str(port)],
                           stderr=subprocess.DEVNULL)
for attempt in range(200):
    try:
        link = socket.create_connection(("127.0.0.1", port))
        break
    except OSError:
        time.sleep(0.05)
link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
stream = link.makefile("rb")


def send(subject, body, reply="_INBOX.reply "):
    link.sendall(f"PUB {subject} {reply}{len(body)}\r\n{body}\r\n".encode())


def receive():
    while True:
        words = stream.readline().decode().split()
        if words[0] == "PING":
            link.sendall(b"PONG\r\n")
        elif words[0] == "MSG":
            stream.read(int(words[-1]) + 2)
            return words[3]


def pull(count):
    send("$JS.API.CONSUMER.MSG.NEXT.S.C", json.dumps({"batch": count, "expires": 60 * 10**9}))


def seconds_until_it_comes():  # a message with a delay of half a second, while 2.5 s long others are answered with word
    pull(501)
    tokens = [receive() for _ in range(501)]
    pull(1)
    start = time.monotonic()
    send(tokens[0], '-NAK {"delay": 500000000}', "")
    for number in range(2500):
        while True:
            left = start + number * 0.001 - time.monotonic()
            if select.select([link], [], [], max(0, left))[0]:
                receive()
                return time.monotonic() - start
            if left <= 0:
                break
        send(tokens[1 + number % 500], word, "")
    receive()
    return time.monotonic() - start


stream.readline()
link.sendall(b'CONNECT {"verbose":false}\r\nSUB _INBOX.> 1\r\n')
send("$JS.API.STREAM.CREATE.S", '{"name":"S","subjects":["s"],"storage":"memory"}')
receive()
send("$JS.API.CONSUMER.DURABLE.CREATE.S.C", json.dumps({"stream_name": "S", "config": {
    "durable_name": "C", "ack_policy": "explicit", "ack_wait": 300 * 10**9, "max_ack_pending": 100000}}))
receive()
longest = 0
for attempt in range(20 if "NAK" in word else 5):  # a busy machine has gaps of its own
    send("$JS.API.STREAM.PURGE.S", "")
    receive()
    for message in range(501):
        send("s", "work")
        receive()
    longest = max(longest, seconds_until_it_comes())
    if longest > 0.75:
        break
print("late" if longest > 0.75 else "in time")
process.terminate()
process.wait()
PYTHON

for version in 2.9.10 2.15.2; do
  GOBIN="$work/$version" go install "github.com/nats-io/nats-server/v2@v$version" > "$work/go.log" 2>&1 ||
    { cat "$work/go.log" && exit 1; }
  for word in +WPI '-NAK {"delay": 60000000000}'; do
    rm -rf "$work/store"
    seen=$(python3 "$work/seen.py" "$work/$version/nats-server" "$work/store" "$word")
    echo "nats-server $version: a delay of 0.5 s, while others are answered with $word: it comes $seen"
    [ "$seen" = "$([ "$word" = +WPI ] && echo "in time" || echo late)" ]
  done
done
