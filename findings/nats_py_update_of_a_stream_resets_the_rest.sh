#!/usr/bin/env bash
# nats-py 2.16.0 (the NATS client for Python) with nats-server 2.15.2: update_stream() of one setting sets all others
# back. The stream no longer has its subjects.
#
# Guess: update_stream(name="WORK", max_age=3600) changes the age; what is not named stays, as with nats.js, whose
# update() reads the present settings first.
# Seen: the stream of "work.>" with 1000 messages at most and a window of ten minutes for duplicates now has the subject
# "WORK", no limit and two minutes. The answer is a success. The next put to work.a has no response.
#
# Who it hurts: whoever changes a limit of a live stream. From then on all work is refused, or lost where it is
# published without an acknowledgement, and the limits and the protection from duplicates are gone.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check nats-py==2.16.0
GOBIN="$work/bin" go install github.com/nats-io/nats-server/v2@v2.15.2 > "$work/go.log" 2>&1 ||
  { cat "$work/go.log" && exit 1; }
cat > "$work/seen.py" << 'PYTHON'
import asyncio, socket, subprocess, sys
import nats
from nats.js.errors import NoStreamResponseError

server, folder = sys.argv[1:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = str(free.getsockname()[1])


def settings(stream):
    config = stream.config
    return f"{config.subjects} {config.max_msgs} {config.duplicate_window:.0f} {config.max_age:.0f}"


async def not_yet(_):  # while the server starts
    pass


async def main():
    connection = await nats.connect(f"nats://127.0.0.1:{port}", max_reconnect_attempts=100, reconnect_time_wait=0.1,
                                    error_cb=not_yet)
    stream = connection.jetstream()
    before = await stream.add_stream(name="WORK", subjects=["work.>"], max_msgs=1000, duplicate_window=600)
    print(settings(before), end=", ")
    print(settings(await stream.update_stream(name="WORK", max_age=3600)), end=", ")
    try:
        await stream.publish("work.a", b"1")
        print("stored")
    except NoStreamResponseError:
        print("no response")
    await connection.close()


process = subprocess.Popen([server, "-js", "-sd", folder, "-a", "127.0.0.1", "-p", port], stderr=subprocess.DEVNULL)
try:
    asyncio.run(main())
finally:
    process.terminate()
    process.wait()
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py" "$work/bin/nats-server" "$work/store")
echo "nats-py 2.16.0: subjects, max_msgs, duplicate_window and max_age before and after, and a put: $seen"
[ "$seen" = "['work.>'] 1000 600 0, ['WORK'] -1 120 3600, no response" ]
