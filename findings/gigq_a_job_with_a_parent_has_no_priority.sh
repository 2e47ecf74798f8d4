#!/usr/bin/env bash
# gigq 0.5.1 (a job queue in SQLite for Python): a job that depends on another one is run after all those that do not,
# whatever its priority.
#
# Guess: first the job of priority 100, as soon as its parent is done: by the documentation the higher number goes
# first.
# Seen: the parent, then the jobs of priority 0, and the one of priority 100 last. Of two such jobs the one that was put
# first is run first, here that of priority 1 before that of 100.
#
# Who it hurts: whoever orders steps of urgent work: each new job of no importance, if only it has no parent, goes
# ahead.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check gigq==0.5.1
cat > "$work/jobs.py" << 'PYTHON'
seen = []


def run(name):
    seen.append(name)
PYTHON
cat > "$work/seen.py" << 'PYTHON'
import logging
import sys
import jobs
from gigq import Job, JobQueue, Worker

logging.disable(logging.CRITICAL)
queue = JobQueue(sys.argv[1])


def submit(name, priority, parents=()):
    job = Job(name, jobs.run, {"name": name}, priority=priority, dependencies=list(parents))
    return queue.submit(job)


parent = submit("parent", 50)
submit("child-1", 1, [parent])
submit("child-100", 100, [parent])
for number in range(2):
    submit(f"other-{number}", 0)
worker = Worker(sys.argv[1])
while worker.process_one():
    pass
print(*jobs.seen)
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py" "$work/jobs.db")
echo "gigq 0.5.1, runs in their order: $seen"
[ "$seen" = "parent other-0 other-1 child-1 child-100" ]
