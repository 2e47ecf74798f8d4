# SPDX-License-Identifier: Apache-2.0
"""Judges the history of a run: checker.py HISTORY prints each violation, and exits with 1 if there is
one.

It knows the lines that clients submitted and the rules of the job (workload.py tells them), and adds
them up itself. It shares no code with muster, and reads nothing but the history.
"""

import argparse
import collections
import hashlib
import re
import sys

import history as histories

AGGREGATED, DEAD = 1, 2  # outcomes in the report
FINAL = ("complete", "cancelled")
# Pools of threads breathe, and a role that was started again has other ones.
THREADS_MORE = 16
# A redrive may open any batch until then: the answer that would name it may be lost.
REDRIVE_SECONDS = 20
LOSE_POISON = ("wipe", "wipe-while-busy", "purge", "lose-stream")
CONTENT_FAULTS = {"damage-content", "hide-content"}
# So many lines of a large item are more than a message takes.
LINES_OF_A_BLOB = 3


def key_and_amount(line):
    key, amount, *_ = line.split(" ")
    return key, int(amount)


class Run:
    """The events of a history, sorted by what the rules ask for."""

    def __init__(self, events):
        self.events = events
        self.contents = {}  # by request
        self.requests = {}  # of acknowledged batches, by number
        for event in events:
            if event["what"] == "content":
                self.contents[event["request"]] = event
            elif event["what"] == "acknowledged":
                self.requests.setdefault(event["batch"], event["request"])
        self.cancelled = {e["batch"] for e in self.of("cancelled")}
        self.cancels = {e["batch"] for e in self.of("cancel")}
        self.batches = {b["batch"]: b for e in self.of("end_batches") for b in e["batches"] or []}
        for number, batch in self.batches.items():
            self.requests.setdefault(number, batch["request_id"])
        # The batches of a ledger that was lost for good are gone, and their rows stay.
        losses = [event["at"] for event in self.of("fault") if event["kind"] == "lose-ledger"]
        self.gone = {event["batch"] for event in self.of("acknowledged") + self.of("seen")
                     if event["at"] < max(losses, default=0) and event["batch"] not in self.batches}
        self.items = collections.defaultdict(dict)
        for batch, item, *rest in self.rows_of("end_items", "items"):
            self.items[batch][item] = rest
        self.totals = {batch: rest for batch, *rest in self.rows_of("end_totals", "totals")}
        self.rows = collections.defaultdict(dict)
        for batch, key, amount in self.rows_of("end_rows", "rows"):
            self.rows[batch][key] = amount

    def of(self, what):
        return [event for event in self.events if event["what"] == what]

    def rows_of(self, what, member):
        return [row for event in self.of(what) for row in event[member]]

    def carries_blobs(self, batch):
        content = self.contents.get(self.requests.get(batch), {})
        is_inline = any(event["plan"]["shape"]["content"] == "inline" for event in self.of("plan"))
        return is_inline and "large" in content.get("kind", "")

    def lines(self, batch):
        """Returns the lines of each item of a batch; None if the run submitted no such batch."""
        content = self.contents.get(self.requests.get(batch))
        return content and content["items"]


def came_to_rest(run):
    """All programs are ready again, and all work is done, within the time that a heal has."""
    found = run.of("rest")
    if not found or not run.of("end_left"):
        yield "the run was not brought to its end"
    for event in found:
        if event["waits"]:
            yield f"not at rest {event['seconds']} s after all was healed: {event['waits']}"


def programs_end_only_by_faults(run):
    """No fault makes a program end by itself, but a NATS server's, and a full disk."""
    filled = {event["given"]["program"] for event in run.of("fault") if "full-disk" in event["kind"]}
    for event in run.of("ended"):
        if not event["program"].startswith("nats") and event["program"] not in filled:
            yield f"{event['program']} ended by itself with {event['code']}: {event['said']}"


def one_batch_for_each_request(run):
    """A request makes one batch that is not cancelled, and no two requests share one."""
    numbers = collections.defaultdict(set)
    requests = collections.defaultdict(set)
    for event in run.of("acknowledged") + run.of("seen"):
        numbers[event["request"]].add(event["batch"])
        requests[event["batch"]].add(event["request"])
    ended = {batch for batch, found in run.batches.items() if found["state"] == "cancelled"}
    for request, found in numbers.items():
        # Once its batch is cancelled, a request may begin another one.
        if len(found - ended - run.cancelled - run.gone) > 1:
            yield f"{request} became batches {sorted(found)}"
    for batch, found in requests.items():
        if len(found) > 1:
            yield f"batch {batch} stands for {sorted(found)}"


def jobs_stay(run):
    """A job that was applied is there, also when a broker has lost its data."""
    refused = [event for event in run.of("refused") if "no job " in event["said"]]
    if refused:
        yield f"{refused[0]['request']} was refused at {refused[0]['at']}: {refused[0]['said'].strip()}"


def acknowledged_batches_stay(run):
    """A batch that a client was told of is in each later list, and done in the end."""
    known = set()
    for event in run.events:
        if event["what"] == "acknowledged":
            known.add(event["batch"])
        elif event["what"] == "listed":
            for batch in sorted(known - run.gone - set(event["batches"])):
                yield f"acknowledged batch {batch} is not in the list at {event['at']}"
    for batch in sorted(known - run.gone):
        state = run.batches.get(batch, {}).get("state", "gone")
        if state not in FINAL:
            yield f"acknowledged batch {batch} is {state} in the end"


def states_go_forward(run):
    """A cancelled batch stays so; a complete one is open again only by a redrive."""
    before = {}
    redrives = [event["at"] for event in run.of("redrive")]
    for event in run.events:
        if event["what"] == "cancelled":
            before[event["batch"]] = "cancelled"
        elif event["what"] == "seen":
            last, state = before.get(event["batch"]), event["state"]
            if last == "cancelled" and state != "cancelled":
                yield f"batch {event['batch']} was cancelled and is {state} at {event['at']}"
            opened = any(event["at"] - REDRIVE_SECONDS < at < event["until"] for at in redrives)
            if last == "complete" and state != "complete" and not opened:
                yield f"batch {event['batch']} was complete and is {state} at {event['at']}"
            before[event["batch"]] = state
    for batch in run.cancelled - run.gone:
        state = run.batches.get(batch, {}).get("state", "gone")
        if state != "cancelled":
            yield f"batch {batch} was cancelled and is {state} in the end"
    for batch, found in run.batches.items():
        if found["state"] == "cancelled" and batch not in run.cancels:
            yield f"batch {batch} is cancelled, and no client asked for it"


def counts_only_grow(run):
    """What is committed stays committed; a redrive alone takes dead items back."""
    before = {}
    for event in run.of("committed"):
        last = before.get(event["batch"])
        if last and (event["items"] < last["items"] or event["aggregated"] < last["aggregated"]):
            yield (f"batch {event['batch']} had {last['items']} items with {last['aggregated']} "
                   f"transactions, and has {event['items']} with {event['aggregated']}")
        before[event["batch"]] = event


def each_item_is_counted_once(run):
    """A complete batch has each item of its content, a cancelled one some of them, and no batch has
    others; each has as many transactions as its content."""
    for batch, found in run.batches.items():
        lines = run.lines(batch)
        if lines is None:
            yield f"batch {batch} ({found['request_id']}) was never submitted"
            continue
        counted = run.items.get(batch, {})
        if strange := set(counted) - set(range(len(lines))):
            yield f"batch {batch} has items {sorted(strange)} beyond its {len(lines)}"
        if found["state"] == "complete" and (lost := set(range(len(lines))) - set(counted)):
            yield f"batch {batch} is complete without items {sorted(lost)}"
        for item, (outcome, transactions, aggregated, rejected) in counted.items():
            if item >= len(lines):
                continue
            refused = sum(key_and_amount(line)[0] == "reject" for line in lines[item])
            size = len(lines[item])
            expected = (size, size - refused, refused) if outcome == AGGREGATED else (size, 0, 0)
            if (transactions, aggregated, rejected) != expected:
                yield (f"item {batch}/{item} has transactions, aggregated, rejected "
                       f"{(transactions, aggregated, rejected)}, not {expected}")
    for batch in set(run.items) - set(run.batches) - run.gone:
        yield f"the report has items of batch {batch}, which no initiator knows"


def rows_are_the_direct_sum(run):
    """The aggregate of a batch is the sum of the lines of its aggregated items."""
    for batch in run.batches:
        lines = run.lines(batch)
        if lines is None:
            continue
        expected = collections.Counter()
        for item, (outcome, *_) in run.items.get(batch, {}).items():
            if outcome == AGGREGATED and item < len(lines):
                for line in lines[item]:
                    key, amount = key_and_amount(line)
                    if key != "reject":
                        expected[key] += amount
        rows = run.rows.get(batch, {})
        for key in sorted(set(rows) | set(expected)):
            if rows.get(key, 0) != expected[key]:
                yield f"batch {batch}, {key}: the report says {rows.get(key)}, the sum is {expected[key]}"


def totals_are_the_direct_sum(run):
    """A batch's running totals are those of its items, and no two results of an item differ."""
    for batch, (alive, dead, transactions, aggregated, rejected, lost, conflicts) in run.totals.items():
        items = run.items.get(batch, {}).values()
        good = [item for item in items if item[0] == AGGREGATED]
        bad = [item for item in items if item[0] != AGGREGATED]
        expected = (len(good), len(bad), sum(i[1] for i in items), sum(i[2] for i in good),
                    sum(i[3] for i in good), sum(i[1] for i in bad))
        if (alive, dead, transactions, aggregated, rejected, lost) != expected:
            yield (f"batch {batch} has totals {(alive, dead, transactions, aggregated, rejected, lost)}"
                   f", and its items add up to {expected}")
        if conflicts:
            yield f"batch {batch} has {conflicts} results that differ from those counted before"


def what_is_counted_was_attempted(run):
    """No item is counted whose handler never began."""
    begun = {(event["batch"], event["item"]) for event in run.of("attempted")}
    for batch, items in run.items.items():
        for item in items:
            if (batch, item) not in begun:
                yield f"item {batch}/{item} is counted, and was never attempted"


def absent_content_costs_no_attempt(run):
    """Each attempt of an item is one of its handler, where no fault but those of content was at work."""
    if {event["kind"] for event in run.of("fault")} - CONTENT_FAULTS:
        return
    attempts = collections.defaultdict(list)
    for event in run.of("attempted"):
        attempts[event["batch"], event["item"]].append(event["attempt"])
    for (batch, item), numbers in attempts.items():
        if max(numbers) > len(numbers):
            yield f"item {batch}/{item} had attempts {numbers}, and was charged {max(numbers)}"


def only_bad_items_are_given_up(run):
    """In the end the doomed items are dead, and no others, but for moody ones whose poison a broker has
    lost: the report still counts them."""
    poison = {tuple(name) for event in run.of("end_poison") for name in event["items"]}
    lossy = any(event["kind"] in LOSE_POISON for event in run.of("fault"))
    dead = set()
    for batch, items in run.items.items():
        lines = run.lines(batch) or []
        for item, (outcome, *_) in items.items():
            if outcome != AGGREGATED:
                dead.add((batch, item))
            keys = {key_and_amount(line)[0] for line in lines[item]} if item < len(lines) else set()
            # What a broker has lost is not there to be redriven.
            lost = lossy and "moody" in keys and (batch, item) not in poison
            if (outcome != AGGREGATED) != ("doomed" in keys) and not (outcome != AGGREGATED and lost):
                yield f"item {batch}/{item} is {'doomed and counted' if 'doomed' in keys else 'given up'}"
    if strange := poison - dead:
        yield f"poison of items that the report does not count as dead: {sorted(strange, key=str)}"
    if lost := {name for name in dead - poison
                if run.batches.get(name[0], {}).get("state") == "complete"}:
        if not lossy:
            yield f"dead items without a message to redrive: {sorted(lost)}"


def late_copies_are_dropped(run):
    """A message that comes again once its batch is complete is dropped, also when its content is gone."""
    for event in run.of("end_poison"):
        for batch, item in event["items"]:
            if run.items.get(batch, {}).get(item, [DEAD])[0] == AGGREGATED:
                yield f"item {batch}/{item} is counted, and a copy of it is poison"


def dead_letters_keep_their_blobs(run):
    """A redrive reads the blob of a dead letter again, unless a broker has lost it."""
    if any(event["kind"] in LOSE_POISON for event in run.of("fault")):
        return
    blobs = {tuple(item) for event in run.of("end_blobs") for item in event["items"] if item}
    for event in run.of("end_poison"):
        for batch, item in event["items"]:
            lines = run.lines(batch) or []
            needs_it = run.carries_blobs(batch) and len(lines[item]) >= LINES_OF_A_BLOB
            if needs_it and (batch, item) not in blobs:
                yield f"item {batch}/{item} is poison without its blob"


def field_of(text, name):
    found = re.search(rf"^{name} (\S+)$", text, re.MULTILINE)
    return found and found[1]


def receipts_are_true(run):
    """A complete batch has a receipt of what the report holds; a cancelled one has none such."""
    newest = {}
    for batch, revision, text, checksum in run.rows_of("end_receipts", "receipts"):
        body = text.partition("checksum ")[0]
        if hashlib.sha256(body.encode()).hexdigest() != checksum:
            yield f"receipt {batch} revision {revision} does not have its checksum"
        if batch not in newest or revision > newest[batch][0]:
            newest[batch] = (revision, text)
    for batch, found in run.batches.items():
        if found["state"] == "cancelled" and batch in newest:
            yield f"cancelled batch {batch} has a receipt as if it were complete"
        if found["state"] != "complete":
            continue
        if batch not in newest:
            yield f"complete batch {batch} has no receipt"
            continue
        items = run.items.get(batch, {}).values()
        expected = {"items": len(items), "transactions": sum(i[1] for i in items),
                    "aggregated": sum(i[2] for i in items if i[0] == AGGREGATED),
                    "rejected": sum(i[3] for i in items if i[0] == AGGREGATED),
                    "dead_lettered": sum(i[1] for i in items if i[0] != AGGREGATED),
                    "items_dead": sum(i[0] != AGGREGATED for i in items)}
        for name, value in expected.items():
            if field_of(newest[batch][1], name) != str(value):
                yield (f"receipt of batch {batch} says {name} "
                       f"{field_of(newest[batch][1], name)}, not {value}")
    for event in run.of("end_verified"):
        if event["code"] != 0:
            yield f"receipt of batch {event['batch']} is not verified: {event['said']}"


def receipts_stay(run):
    """A receipt that was issued is not issued otherwise under the same revision."""
    seen = {}
    for event in run.of("receipt"):
        key = (event["batch"], event["revision"])
        if seen.setdefault(key, event["checksum"]) != event["checksum"]:
            yield f"receipt {key[0]} revision {key[1]} changed at {event['at']}"


def nothing_is_left(run):
    """No message, no blob, no process, and no growing number of threads."""
    for event in run.of("end_queues"):
        for queue in event["queues"] or []:
            waiting = {name: queue[name] for name in ("ready", "in_flight", "delayed") if queue[name]}
            if waiting:
                yield f"queue {queue['queue']} still holds {waiting}"
    for event in run.of("end_streams"):
        for stream, count in event["streams"].items():
            if count and (stream.startswith("MUSTER_") or stream == ""):
                yield f"stream {stream} still holds {count} messages"
    poison = {tuple(name) for event in run.of("end_poison") for name in event["items"]}
    for event in run.of("end_blobs"):
        for item in event["items"]:
            # A redrive reads the blob of a dead letter again.
            if item is None or tuple(item) not in poison:
                yield f"a blob of item {item} is left"
    for event in run.of("end_left"):
        if event["left"]:
            yield f"processes outlive their parents: {event['left']}"
    begun = {name: count for event in run.of("begin_threads")
             for name, count in event["threads"].items()}
    for event in run.of("end_threads"):
        for name, count in event["threads"].items():
            if count > begun[name] + THREADS_MORE and not name.startswith("nats"):
                yield f"{name} has {count} threads, and began with {begun[name]}"


def programs_stop_in_order(run):
    for event in run.of("end_exits"):
        for name, code in event["exits"].items():
            # A NATS server ends with 1 on SIGTERM.
            if code != 0 and not (name.startswith("nats") and code == 1):
                yield f"{name} ended with {code} on SIGTERM"


RULES = (came_to_rest, programs_end_only_by_faults, one_batch_for_each_request, jobs_stay,
         acknowledged_batches_stay, states_go_forward, counts_only_grow, each_item_is_counted_once,
         rows_are_the_direct_sum, totals_are_the_direct_sum, what_is_counted_was_attempted,
         absent_content_costs_no_attempt, only_bad_items_are_given_up, late_copies_are_dropped,
         dead_letters_keep_their_blobs, receipts_are_true, receipts_stay, nothing_is_left,
         programs_stop_in_order)


# The rules that muster is known to break, and why. `--known` tells of them without an error.
KNOWN = {
    jobs_stay: "a broker that loses its data loses the jobs without an open batch, too, and those of "
               "open batches are missing for a while",
}


def violations(events, known=()):
    """Returns the violations of a history as sentences, each with its rule's name; not those of the
    `known` rules."""
    run = Run(events)
    return [f"{rule.__name__}: {what}" for rule in RULES if rule not in known for what in rule(run)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--known", action="store_true", help="tolerate what muster is known to break")
    parser.add_argument("history")
    given = parser.parse_args()
    found = violations(histories.read(given.history), KNOWN if given.known else ())
    for sentence in found:
        print(sentence)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
