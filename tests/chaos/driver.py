# SPDX-License-Identifier: Apache-2.0
"""One run of one seed: a mesh under attack, healed, recorded."""

import ctypes
import signal
import sys
import time

import plan as plans
from clients import Clients
from end_state import Healer, Recorder, children
from history import History
from mesh_under_test import MeshUnderTest
from observer import Observer
from workload import HANDLER, job_file

TICK_SECONDS = 0.02
ITEM_SECONDS = 0.03
LEFT_SECONDS = 10  # for the end of what the ended programs have started
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def become_reaper():
    """From now on this process is the parent of descendants whose own parent has ended. It does not
    outlive its own parent, so that no mesh does."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has it ignored in the background
    prctl(PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)


class Driver:
    """Carries out a plan in a folder of its own."""

    def __init__(self, folder, plan, server, kinds):
        self.folder = folder
        self.plan = plan
        self.kinds = {kind.name: kind for kind in kinds}
        self.history = History(folder / "history.jsonl")
        self.mesh = MeshUnderTest(folder, {**plan["shape"], "server": server})
        self.clients = Clients(self.mesh, self.history)
        self.wiped = None  # the one server of a cluster that may lose its data
        self.crowd = []  # connections of no use
        self.undo = {}  # what puts the uploads of a fault back, by the request of its batch
        self.damaged = set()  # the inodes of damaged uploads
        self.busy = False  # the job is to have work in hand until all other batches are done
        self.quiet = False  # no work is to come after the attack

    def run(self):
        become_reaper()
        self.history.record("plan", plan=self.plan)
        try:
            self.mesh.start()
            self.apply_job()
            self.attack()
        finally:
            # The end of each thread of a parent is a signal, and one is enough.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.clients.stop()
            self.mesh.kill()
            self.history.close()

    def apply_job(self):
        handler = self.folder / "handler.py"
        # A program of its own: an interpreter would have to be allowed by its arguments.
        handler.write_text(f"#!{sys.executable} -S\n{HANDLER}")
        handler.chmod(0o755)
        job = self.folder / "job.yaml"
        job.write_text(job_file(handler, ITEM_SECONDS, self.plan["shape"]["content"]))
        (self.folder / "broken").touch()
        code, said = self.clients.apply_job()
        if code != 0:
            raise AssertionError(f"the job was not applied: {said}")

    def attack(self):
        recorder = Recorder(self.mesh, self.clients, self.history)
        self.history.record("begin_threads", threads=recorder.begun)
        observer = Observer(self.mesh, self.clients, self.history)
        begun = time.monotonic()
        for at, action, given in self.plan["steps"]:
            while time.monotonic() < begun + at:
                self.tick()
                time.sleep(TICK_SECONDS)
            self.act(action, given)
        healer = Healer(self)
        healer.heal()
        recorder.record_mesh(healer)
        observer.stop()
        self.history.record("end_exits", exits=self.mesh.stop())
        recorder.record_report()
        recorder.verify()
        self.history.record("end_left", left=self.left())

    def tick(self):
        self.mesh.revive(lambda program: self.history.record(
            "ended", program=program.name, code=program.process.returncode,
            said=self.mesh.tail(program.name)))

    def act(self, action, given):
        if action == "submit":
            self.clients.submit(given["batch"])
        elif action == "cancel":
            self.clients.cancel(given["request"])
        elif action == "redrive":
            self.clients.redrive()
        elif action == "mend moods":
            (self.folder / "broken").unlink(missing_ok=True)
        else:
            kind = self.kinds[given["kind"]]
            self.history.record("fault", **given, edge=action)
            begun = time.monotonic()
            getattr(kind, action)(self, given["given"])
            self.history.record("fault", **given, edge=f"{action} done",
                                seconds=round(time.monotonic() - begun, 3))

    @staticmethod
    def left():
        end = time.monotonic() + LEFT_SECONDS
        while (left := children()) and time.monotonic() < end:
            time.sleep(TICK_SECONDS)
        return left


def run(folder, seed, server, kinds, has_disks):
    """Runs a seed in `folder`; its history is there as history.jsonl."""
    Driver(folder, plans.draw(seed, kinds, has_disks), server, kinds).run()
