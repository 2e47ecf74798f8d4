# SPDX-License-Identifier: Apache-2.0
"""The clients of a run: they submit, cancel and redrive through the command line, as users do.

A client whose command fails does not know what became of it, and tries again until it knows.
"""

import json
import os
import re
import sqlite3
import subprocess
import threading
import time

import observer
import workload

COMMAND_SECONDS = 15
PAUSE_SECONDS = 0.2
SHORT_SECONDS = 0.01
CANCELLED = " is cancelled"
NO_JOB = "no job "
ELSEWHERE = re.compile(r"belongs to batch (\d+) of initiator \S+ \((\S+)\)")


class Clients:
    """Runs each command in a thread of its own. `history` records what they learn."""

    def __init__(self, mesh, history):
        self.mesh = mesh
        self.history = history
        self.threads = []
        self.ending = threading.Event()
        self.lock = threading.Lock()
        self.commands = set()  # that run
        self.numbers = {}  # of acknowledged batches, by request
        self.batches = {}  # by request
        self.initiators = {}  # to which a request went first, by request

    def muster(self, *arguments, server=None, seconds=COMMAND_SECONDS):
        """Returns (exit code, the JSON value or None, stderr); exit code None: it took too long."""
        command = [os.environ["MUSTER"], *map(str, arguments), "-o", "json", "--server",
                   server or self.mesh.server(), "--timeout", "5s"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            with self.lock:
                self.commands.add(process)
            try:
                out, said = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                return None, None, "took too long"
            finally:
                with self.lock:
                    self.commands.discard(process)
        return process.returncode, json.loads(out) if out.strip() else None, said

    def stop(self):
        """Ends the commands, which try for long to reach a mesh that is gone."""
        self.ending.set()
        with self.lock:
            commands = list(self.commands)
        for process in commands:
            process.kill()

    def apply_job(self):
        """Returns (exit code, stderr)."""
        code, _, said = self.muster("job", "apply", self.mesh.folder / "job.yaml")
        return code, said

    def start(self, work, *arguments):
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self.threads.append(thread)

    def wait(self):
        """Whether a client does not know yet what became of its command."""
        return any(thread.is_alive() for thread in self.threads)

    def server_of(self, request):
        """Returns where the batch of a request lies: each initiator knows its own."""
        return self.mesh.server(self.initiators.get(request, 0))

    def list_batches(self):
        """Returns (all batches, ""), or (None, why an initiator does not tell its own)."""
        batches = []
        for initiator in range(self.mesh.shape["initiators"]):
            code, found, said = self.muster("batch", "list", "--limit", "1000",
                                            server=self.mesh.server(initiator))
            if code != 0:
                return None, said
            for batch in found:
                if "counts_problem" in batch:
                    return None, batch["counts_problem"]
            batches += found
        return batches, ""

    def submit(self, batch, initiator=None):
        """Submits a batch; without a number, to an initiator that its name decides."""
        if initiator is None:
            initiator = batch["seed"] % self.mesh.shape["initiators"]
        with self.lock:
            first = batch["request"] not in self.batches
            self.batches[batch["request"]] = batch
            self.initiators.setdefault(batch["request"], initiator)
        path = self.mesh.folder / f"{batch['request'].replace(' ', '-')}.txt"
        if first:
            self.history.record("content", request=batch["request"], kind=batch["kind"],
                                padding=batch.get("padding", workload.NOT_PADDED),
                                items=workload.items_of(batch))
            workload.write_content(batch, path.with_suffix(".new"))
            path.with_suffix(".new").rename(path)
        self.start(self.submit_until_known, batch["request"], path, self.mesh.server(initiator))

    def submit_until_known(self, request, path, server):
        while not path.exists():
            time.sleep(PAUSE_SECONDS)
        self.history.record("submit", request=request)
        while not self.ending.is_set():
            code, result, said = self.muster(
                "batch", "submit", workload.JOB, "--input", path, "--request-id", request, "-q",
                server=server)
            if result is not None and code in (0, 3):
                with self.lock:
                    self.numbers[request] = result["batch"]
                self.history.record("acknowledged", request=request, batch=result["batch"])
                return
            if code == 1:
                self.history.record("refused", request=request, said=said)
            else:
                self.history.record("unanswered", request=request, code=code, said=said[-300:])
            if code == 1:
                if CANCELLED in said:
                    return
                if elsewhere := ELSEWHERE.search(said):
                    self.know_elsewhere(request, int(elsewhere[1]), elsewhere[2])
                    return
                if NO_JOB in said:  # what an operator does then
                    self.apply_job()
            time.sleep(PAUSE_SECONDS)

    def know_elsewhere(self, request, batch, address):
        """Takes it that the initiator at `address` has the batch of a request."""
        with self.lock:
            self.numbers[request] = batch
            for number in range(self.mesh.shape["initiators"]):
                if self.mesh.server(number) == address:
                    self.initiators[request] = number
        self.history.record("acknowledged", request=request, batch=batch)

    def cancel(self, request, when_counted=False):
        """Cancels the batch of a request; `when_counted`: not before its first items are counted."""
        self.start(self.cancel_until_known, request, when_counted)

    def cancel_until_known(self, request, when_counted):
        server = self.server_of(request)
        while not self.ending.is_set():
            batch = self.number_of(request)
            if batch is not None and not (when_counted and self.uncounted(batch)):
                self.history.record("cancel", batch=batch)
                code, _, said = self.muster("batch", "cancel", batch, "--reason", "chaos",
                                            server=server)
                if code == 0:
                    self.history.record("cancelled", batch=batch)
                    return
                if code == 1 and "is complete" in said:
                    self.history.record("cancel_refused", batch=batch, said=said)
                    return
            time.sleep(SHORT_SECONDS if when_counted else PAUSE_SECONDS)

    def uncounted(self, batch):
        """Whether the report has no item of a batch yet."""
        try:
            with observer.opened(self.mesh.report()) as report:
                return not report.execute("SELECT items_counted FROM muster_batch WHERE batch = ? "
                                          "AND items_counted > 0", (batch,)).fetchall()
        except sqlite3.Error:
            return True

    def number_of(self, request):
        with self.lock:
            if request in self.numbers:
                return self.numbers[request]
        batches, _ = self.list_batches()
        return next((b["batch"] for b in batches or [] if b["request_id"] == request), None)

    def redrive(self):
        self.start(self.redrive_once)

    def redrive_once(self):
        """Gives all poison another chance; what cannot be reached now gets none."""
        _, queues, _ = self.muster("queue", "list")
        for queue in queues or []:
            if queue["poison"]:
                self.redrive_messages(queue["queue"])

    def redrive_messages(self, queue, *messages):
        self.history.record("redrive", queue=queue)
        chosen = [word for message in messages for word in ("--message", message)]
        _, result, _ = self.muster("queue", "redrive", queue, *chosen)
        if result:
            self.history.record("redriven", queue=queue, **result)
