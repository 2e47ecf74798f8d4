#!/usr/bin/env bash
# litequeue 0.9 (queues in SQLite for Python): the longest length of a queue is what the first program gave. A file
# opened with another one, or with none, keeps it.
#
# Guess: what the queue is opened with: with maxsize=5, or without one, a third message goes in.
# Seen: after maxsize=2 a queue opened with 5 refuses the third message, while full() says no, and so does one opened
# without a longest length. The limit is a trigger in the file, which is made only if there is none.
#
# Who it hurts: whoever raises the limit in the settings: nothing changes, and a program that asks full() first fails.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check litequeue==0.9
cat > "$work/seen.py" << 'PYTHON'
import sqlite3
import sys
from litequeue import LiteQueue

for limit in (2, 5, None):
    queue = LiteQueue(sys.argv[1], maxsize=limit)
    try:
        while queue.qsize() < 3:
            queue.put("message")
        print(limit, "three messages", end="; ")
    except sqlite3.IntegrityError as error:
        print(limit, queue.full(), error, end="; ")
    queue.close()
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py" "$work/queue.db")
echo "litequeue 0.9, maxsize, full() and the third message: $seen"
[ "$seen" = "2 True Max queue length reached: 2; 5 False Max queue length reached: 2; \
None False Max queue length reached: 2; " ]
