#!/usr/bin/env bash
# persist-queue 1.1.0 (queues in SQLite for Python): with auto_commit=False the priority queue deletes jobs that it
# never handed out. What was put before the most urgent job is gone.
#
# Guess: high, mid and low, one after the other, as without this option; and after the first one and task_done() the
# queue of the next program has the other two.
# Seen: low was put first, and after high there is only mid, then Empty with a size of 1. After high and task_done() the
# file has mid alone. It takes the number of the job that it handed out for a mark up to which all is done.
#
# Who it hurts: whoever commits only when a job is done, to lose none: urgent work makes the waiting work vanish.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check persist-queue==1.1.0
cat > "$work/seen.py" << 'PYTHON'
import sys
from persistqueue import Empty, PriorityQueue


def filled(name, commit):
    queue = PriorityQueue(f"{sys.argv[1]}/{name}", auto_commit=commit)
    for job, priority in (("low", 9), ("high", 1), ("mid", 5)):
        queue.put(job, priority=priority)
    queue.task_done()
    return queue


def drain(queue):
    jobs = []
    try:
        while True:
            jobs.append(queue.get(block=False))
    except Empty:
        return " ".join(jobs + [str(queue.qsize())])


seen = [drain(filled(f"commit-{commit}", commit)) for commit in (True, False)]
first = filled("twice", False)
job = first.get(block=False)
first.task_done()
first.close()
seen.append(f"{job} " + drain(PriorityQueue(f"{sys.argv[1]}/twice", auto_commit=False)))
print(", ".join(seen))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py" "$work")
echo "persist-queue 1.1.0, jobs and size left with auto_commit, without it, and with two programs: $seen"
[ "$seen" = "high mid low 0, high mid 1, high mid 0" ]
