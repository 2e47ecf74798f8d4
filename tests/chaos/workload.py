# SPDX-License-Identifier: Apache-2.0
"""The work of a run: a job that adds up amounts by key, its handler, and batches for it.

A line is "KEY AMOUNT [PADDING]". Some keys make trouble:

    reject   the handler refuses the line
    moody    the handler gives the item up while the run's file "broken" is there
    doomed   the handler always gives the item up
    held     the handler waits until the run's file "open" is there
"""

import random

JOB = "chaos"
LINES_PER_ITEM = 5
LEASE_SECONDS = 2
# What is added to each line, in characters. Without it items travel inline, also if the job asks for references.
NOT_PADDED = 0
# Items of 6 to 20 KB travel by reference, unless the job has its messages carry their content.
PADDED = (1_200, 4_000)
# So large that an item does not fit into a message: where it is to travel inline, it becomes a blob.
LARGE = 300_000

# Each begin of an item is one line of a file, written at once: it may be the handler's last deed.
HANDLER = """
import json, os, sys, time
notes = os.open("attempts", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
for line in sys.stdin:
    item = json.loads(line)
    name = item["item"].split(":")[0]
    note = [time.monotonic(), *map(int, name.split("/")), item["attempt"]]
    os.write(notes, (json.dumps(note) + "\\n").encode())
    time.sleep(float(sys.argv[1]))
    sums, rejected, why = {}, [], None
    for transaction in item["transactions"]:
        key, amount, *_ = transaction["fields"][0].split(" ")
        while key == "held" and not os.path.exists("open"):
            time.sleep(0.02)
        if key == "doomed" or (key == "moody" and os.path.exists("broken")):
            why = key
        if key == "reject":
            rejected.append({"line": transaction["line"], "reason": "is to be rejected"})
        else:
            sums[key] = sums.get(key, 0) + int(amount)
    if why:
        answer = {"item": item["item"], "outcome": "dead", "why": why}
    else:
        rows = [{"key": key, "amount": amount} for key, amount in sums.items()]
        answer = {"item": item["item"], "outcome": "ok", "groups": {"by_key": rows},
                  "rejected": rejected}
    print(json.dumps(answer), flush=True)
"""


def job_file(handler, item_seconds, content):
    """`content` is what the job says of its items' content: reference or inline."""
    # So many attempts that no run of faults gives a sound item up.
    return f"""
name: {JOB}
input: {{format: lines}}
item: {{transactions: {LINES_PER_ITEM}, max_bytes: 4MiB}}
handler: {{command: [{handler}, "{item_seconds}"], deadline: 60s, version: "1"}}
groups:
  - {{name: by_key, keys: [key], measures: {{amount: int}}}}
queue: {{partitions: 2, visibility: {LEASE_SECONDS}s, max_attempts: 100, ttl: 7d,
  content: {content}}}
tolerate: {{rejected: 100%}}
"""


def draw_batch(chance, name, kind, padded=None):
    """Returns the description of a batch, which its content is a pure function of. Its lines are padded
    as `padded` says; without it, those of every other batch."""
    items = chance.randint(1, 3) if "large" in kind else chance.randint(2, 14)
    if padded is None:
        padded = chance.random() < 0.5
    padding = LARGE if "large" in kind else chance.randint(*PADDED) if padded else NOT_PADDED
    return {"request": name, "kind": kind, "items": items, "padding": padding,
            "seed": chance.randrange(2**32)}


def items_of(batch):
    """Returns the lines of each item of a batch, without their padding."""
    chance = random.Random(batch["seed"])
    items = [[f"{chance.choice('abcdefg')} {chance.randint(-999, 9999)}"
              for _ in range(LINES_PER_ITEM)] for _ in range(batch["items"])]
    odd = {"rejects": "reject", "moody": "moody", "doomed": "doomed", "held": "held"}.get(
        batch["kind"].removeprefix("large "))
    if odd:
        for _ in range(chance.randint(1, 3)):
            items[chance.randrange(len(items))][chance.randrange(LINES_PER_ITEM)] = f"{odd} 1"
    # The last item is often a short one.
    del items[-1][chance.randint(1, LINES_PER_ITEM):]
    if odd and not any(line.startswith(odd) for item in items for line in item):
        items[-1][0] = f"{odd} 1"
    return items


def write_content(batch, path):
    """Writes the file that a client submits."""
    noise = random.Random(batch["seed"] + 1)
    padding = batch.get("padding", NOT_PADDED)
    with open(path, "w", encoding="utf-8") as file:
        for item in items_of(batch):
            for line in item:
                file.write(f"{line} {noise.randbytes(padding // 2).hex()}\n" if padding else f"{line}\n")
