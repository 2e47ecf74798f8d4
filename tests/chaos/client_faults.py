# SPDX-License-Identifier: Apache-2.0
"""What clients and operators do at a bad moment."""

import contextlib
import os
import resource
import socket

import workload
from fault import Fault

DESCRIPTORS = 256  # of the initiator, while there is a crowd before it
CROWD = 400


class CancelAtCompletion(Fault):
    """A batch is cancelled while its last items are being counted."""

    name = "cancel-at-completion"

    @classmethod
    def draw(cls, chance, shape):
        return {"batch": workload.draw_batch(chance, f"cancelled {chance.randrange(10**6)}", "small")}

    @staticmethod
    def begin(stage, given):
        stage.clients.submit(given["batch"])
        stage.clients.cancel(given["batch"]["request"], when_counted=True)


class CancelLarge(Fault):
    """A batch is cancelled whose slices are blobs."""

    name = "cancel-large"

    @classmethod
    def draw(cls, chance, shape):
        return {"batch": workload.draw_batch(chance, f"large {chance.randrange(10**6)}", "large held")}

    @staticmethod
    def begin(stage, given):
        stage.clients.submit(given["batch"])

    @staticmethod
    def end(stage, given):
        stage.clients.cancel(given["batch"]["request"])


class TwoInitiators(Fault):
    """Clients use two initiators, and one sends its request to the other one, too."""

    name = "two-initiators"
    initiators = 2

    @classmethod
    def draw(cls, chance, shape):
        if shape["initiators"] < cls.initiators:
            return None
        return {"batch": workload.draw_batch(chance, f"both {chance.randrange(10**6)}", "small")}

    @staticmethod
    def begin(stage, given):
        for initiator in range(2):
            stage.clients.submit(given["batch"], initiator)


class Crowd(Fault):
    """More connections are open than the initiator has descriptors for."""

    name = "crowd"

    @classmethod
    def draw(cls, chance, shape):
        return {}

    @staticmethod
    def begin(stage, given):
        program = stage.mesh.programs["initiator0"]
        with contextlib.suppress(ProcessLookupError):  # another fault has killed it
            resource.prlimit(program.process.pid, resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        host, port = stage.mesh.addresses["initiator0"].split(":")
        for _ in range(CROWD):
            with contextlib.suppress(OSError):
                stage.crowd.append(socket.create_connection((host, int(port)), 1))

    @staticmethod
    def end(stage, given):
        while stage.crowd:
            stage.crowd.pop().close()


class MoveData(Fault):
    """The initiator's data is found under another path after a restart, in the middle of a batch."""

    name = "move-data"

    @classmethod
    def draw(cls, chance, shape):
        if "initiator0" in shape["disks"]:
            return None
        return {"batch": workload.draw_batch(chance, f"moved {chance.randrange(10**6)}", "large")}

    @staticmethod
    def begin(stage, given):
        for name in ("processor0", "processor1"):
            stage.mesh.programs[name].freeze()
        stage.clients.submit(given["batch"])

    @staticmethod
    def end(stage, given):
        program = stage.mesh.programs["initiator0"]
        program.kill()
        before = stage.mesh.data_dir("initiator0")
        after = before.with_name(before.name + "-moved")
        os.rename(before, after)
        stage.mesh.moved["initiator0"] = after
        program.argv = [str(after) if word == str(before) else word for word in program.argv]
        program.wanted = True
        for name in ("processor0", "processor1"):
            stage.mesh.programs[name].thaw()


class NoNewWork(Fault):
    """No batch comes once the mesh is healed, so that it finds by itself what has to go on."""

    name = "no-new-work"
    known = "an idle mesh looks for lapsed leases twice a minute: such a run takes too long for the gate"

    @classmethod
    def draw(cls, chance, shape):
        return {}

    @staticmethod
    def begin(stage, given):
        stage.quiet = True
