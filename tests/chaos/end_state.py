# SPDX-License-Identifier: Apache-2.0
"""Heals a mesh after the attack, waits until its work is done, and records what it came to."""

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import time

import workload
from checker import THREADS_MORE
from nats_wire import NatsWire
from observer import opened

# A processor that is idle looks for lapsed leases twice a minute; new work makes it look at once.
NUDGE_SECONDS = workload.LEASE_SECONDS + 0.5
HEAL_SECONDS = 75
# Settled messages may be back after the death of a server of version 2.9; a look takes them away.
SETTLE_SECONDS = 15
PAUSE_SECONDS = 0.1
FINAL = ("complete", "cancelled")
CONTENT = re.compile(r"item (\d+)/(\d+),")
BLOB = re.compile(r"batch-(\d+)(?:-of-\w+)?-item-(\d+)")


class Healer:
    """Brings the mesh of a driver to rest."""

    def __init__(self, stage):
        self.stage = stage
        self.mesh = stage.mesh
        self.clients = stage.clients
        self.nudges = 0

    def heal(self):
        """Records `rest`, with what is not at rest at the end of the time that it has."""
        begun = nudged = redriven = time.monotonic()
        self.mesh.heal()
        (self.mesh.folder / "broken").unlink(missing_ok=True)
        gate = self.mesh.folder / "open"
        if self.stage.busy:
            self.clients.submit({"request": "busy", "kind": "held", "items": 2, "seed": 1})
        while True:
            self.stage.tick()
            # Not while a cancel of a held batch is on its way: it would race with the completion.
            if not self.stage.busy and not self.clients.wait():
                gate.touch()
            waits = self.what_waits()
            now = time.monotonic()
            if not waits and gate.exists() or now > begun + HEAL_SECONDS:
                break
            if not waits:
                gate.touch()
            if now - nudged > NUDGE_SECONDS and not self.clients.wait() and not self.stage.quiet:
                self.nudge()
                nudged = now
            if now - redriven > NUDGE_SECONDS:
                self.redrive_moody()
                redriven = now
            time.sleep(PAUSE_SECONDS)
        gate.touch()
        self.clients.ending.set()
        self.stage.history.record("rest", seconds=round(time.monotonic() - begun, 2), waits=waits,
                                  nudges=self.nudges)

    def nudge(self):
        """A small batch, as a mesh that is in use gets one now and then."""
        self.nudges += 1
        self.clients.submit({"request": f"nudge {self.nudges}", "kind": "small", "items": 1,
                             "seed": self.nudges})

    def what_waits(self):
        """Returns a sentence for what is not at rest yet; an empty text if all is."""
        for name, program in self.mesh.programs.items():
            if not program.is_ready():
                return f"{name} is not ready: {self.mesh.tail(name, 1) if program.runs() else 'down'}"
        if self.clients.wait():
            return "a client waits for its answer"
        batches, said = self.clients.list_batches()
        if batches is None:
            return f"no list of batches: {said}"
        held = not (self.mesh.folder / "open").exists()
        for batch in batches:
            if batch["state"] not in FINAL and not (held and self.is_held(batch["request_id"])):
                return f"batch {batch['batch']} is {batch['state']}: {batch.get('problem', '')}"
        code, queues, said = self.clients.muster("queue", "list")
        if code != 0:
            return f"no list of queues: {said}"
        for queue in queues:
            if queue["ready"] + queue["in_flight"] + queue["delayed"] and not held:
                return f"queue {queue['queue']} is not empty: {queue}"
        if self.moody():
            return f"poison of items that are well again: {self.moody()}"
        return ""

    def is_held(self, request):
        return "held" in self.clients.batches[request]["kind"]

    def poison(self):
        """Yields (queue, message, batch, item) of all poison."""
        _, queues, _ = self.clients.muster("queue", "list")
        for queue in queues or []:
            if queue["poison"]:
                _, messages, _ = self.clients.muster("queue", "poison", queue["queue"], "--max", 1000)
                for message in messages or []:
                    found = CONTENT.search(message["content"])
                    batch, item = (int(found[1]), int(found[2])) if found else (None, None)
                    yield queue["queue"], message["message"], batch, item

    def moody(self):
        """Returns (queue, message) of poison that another attempt mends."""
        moody = set()
        for request, number in self.clients.numbers.items():
            for index, lines in enumerate(workload.items_of(self.clients.batches[request])):
                if any(line.startswith("moody") for line in lines):
                    moody.add((number, index))
        return [(queue, message) for queue, message, batch, item in self.poison()
                if (batch, item) in moody]

    def redrive_moody(self):
        for queue, message in self.moody():
            self.clients.redrive_messages(queue, message)


class Recorder:
    """Records the state of a mesh at rest, and of what is left after its end."""

    def __init__(self, mesh, clients, history):
        self.mesh = mesh
        self.clients = clients
        self.history = history
        self.begun = self.threads()

    def record_mesh(self, healer):
        history = self.history
        batches, _ = self.clients.list_batches()
        history.record("end_batches", batches=batches)
        poison = [(b, i) for _, _, b, i in healer.poison()]
        self.record_queues(poison)
        history.record("end_poison", items=poison)
        for batch in batches or []:
            _, receipt, said = self.clients.muster(
                "batch", "receipt", batch["batch"], server=self.clients.server_of(batch["request_id"]))
            history.record("end_receipt", batch=batch["batch"], receipt=receipt, said=said)
        history.record("end_threads", threads=self.settled_threads())

    def settled_threads(self):
        """Waits for the end of threads that have nothing to do any more, such as those of a job that was
        made anew."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            threads = self.threads()
            more = {name for name, count in threads.items()
                    if count > self.begun.get(name, 0) + THREADS_MORE}
            if not more or time.monotonic() > end:
                return threads
            time.sleep(PAUSE_SECONDS)

    def threads(self):
        return {name: program.threads() for name, program in self.mesh.programs.items()}

    def record_queues(self, poison):
        """Waits for late copies: what a program sent before it was frozen may come now. A redrive needs
        the blobs of `poison`."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            _, queues, _ = self.clients.muster("queue", "list")
            streams, blobs = self.stored()
            waiting = any(queue["ready"] + queue["in_flight"] + queue["delayed"]
                          for queue in queues or [])
            stored = set(blobs) - set(map(tuple, poison)) or any(
                count for name, count in streams.items() if name.startswith("MUSTER_"))
            if time.monotonic() > end or not (waiting or stored):
                break
            time.sleep(PAUSE_SECONDS)
        self.history.record("end_queues", queues=queues)
        self.history.record("end_streams", streams=streams)
        self.history.record("end_blobs", items=blobs)

    def stored(self):
        """Returns the number of messages in each stream but that of the blobs, and the items to which
        blobs belong (None: to none); an error under an empty name. What a put that died left of a blob
        has no metadata, and its own end: a day later."""
        try:
            with contextlib.closing(NatsWire(self.mesh.nats_addresses[0])) as nats:
                streams = {name: nats.api(f"STREAM.INFO.{name}")["state"]["messages"]
                           for name in nats.api("STREAM.NAMES")["streams"] or ()}
                if streams.pop("OBJ_muster", None) is None:
                    return streams, []
                named = nats.api("STREAM.INFO.OBJ_muster", subjects_filter="$O.muster.M.>")
                return streams, [item_of_blob(subject)
                                 for subject in named["state"].get("subjects") or ()]
        except (OSError, AssertionError) as error:
            return {"": str(error)}, []

    def record_report(self):
        """After the end of all programs: nothing changes it any more."""
        attempts = self.mesh.folder / "attempts"
        for line in attempts.read_text(encoding="ascii").splitlines() if attempts.exists() else ():
            at, batch, item, attempt = json.loads(line)
            self.history.record("attempted", at=at, batch=batch, item=item, attempt=attempt)
        with opened(self.mesh.report()) as report:
            self.history.record("end_items", items=report.execute(
                "SELECT batch, item, outcome, transactions, aggregated, rejected FROM muster_item"
            ).fetchall())
            self.history.record("end_totals", totals=report.execute(
                "SELECT batch, items_counted, items_dead, transactions, aggregated, rejected, "
                "dead_lettered, conflicts FROM muster_batch").fetchall())
            self.history.record("end_receipts", receipts=report.execute(
                "SELECT batch, revision, text, checksum FROM muster_receipt").fetchall())
            with contextlib.suppress(sqlite3.OperationalError):  # no batch made the table
                self.history.record("end_rows", rows=report.execute(
                    "SELECT batch, key, amount FROM by_key").fetchall())

    def verify(self):
        """Has muster compute each receipt again from ledger and report, in a folder of their own."""
        if self.mesh.shape["initiators"] > 1:
            return  # the batches of a report lie in several ledgers
        folder = self.mesh.folder / "verify"
        folder.mkdir()
        shutil.copytree(self.mesh.data_dir("initiator0") / "ledger", folder / "ledger")
        for file in self.mesh.data_dir("controller").glob("report.db*"):
            shutil.copy(file, folder)
        with opened(self.mesh.report()) as report:
            batches = report.execute("SELECT DISTINCT batch FROM muster_receipt").fetchall()
        for (batch,) in batches:
            done = subprocess.run(
                [os.environ["MUSTER"], "batch", "receipt", str(batch), "--verify", "--data-dir",
                 str(folder)], capture_output=True, text=True, timeout=60, check=False)
            self.history.record("end_verified", batch=batch, code=done.returncode,
                                said=done.stderr)
        shutil.rmtree(folder)


def item_of_blob(subject):
    """Returns (batch, item) of an item's blob; None for any other one."""
    encoded = subject.rpartition(".")[2]
    name = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode(errors="replace")
    found = BLOB.fullmatch(name)
    return found and (int(found[1]), int(found[2]))


def children():
    """Returns the command lines of this process's children: as the reaper of all that a run has
    started (`become_reaper`), it has those that their own parents have left, too."""
    me = os.getpid()
    names = []
    for task in pathlib.Path(f"/proc/{me}/task").glob("*/children"):
        for pid in task.read_text(encoding="ascii").split():
            with contextlib.suppress(OSError):
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words != [b""]:  # a zombie has ended
                    names.append(b" ".join(words).decode(errors="replace").strip())
    return names
