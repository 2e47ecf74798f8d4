# SPDX-License-Identifier: Apache-2.0
"""Faults of programs, of the connections between them, and of their disks."""

import contextlib

from fault import ROLES, Fault, links_of, programs_of


class Kill(Fault):
    """kill -9, and a start a while later."""

    name = "kill"

    @classmethod
    def draw(cls, chance, shape):
        return {"programs": [chance.choice(programs_of(shape))]}

    @staticmethod
    def begin(stage, given):
        for name in given["programs"]:
            stage.mesh.programs[name].kill()

    @staticmethod
    def end(stage, given):
        for name in given["programs"]:
            stage.mesh.programs[name].wanted = True  # the driver starts it


class KillMany(Kill):
    """All of a role, or everything, at once."""

    name = "kill-many"

    @classmethod
    def draw(cls, chance, shape):
        role = chance.choice([*ROLES, ""])
        names = [name for name in programs_of(shape) if name.startswith(role)]
        return {"programs": names} if names else None


class Restart(Kill):
    """SIGTERM, and a start a while later."""

    name = "restart"

    @staticmethod
    def begin(stage, given):
        for name in given["programs"]:
            stage.mesh.programs[name].terminate()


class Freeze(Fault):
    """SIGSTOP, often for longer than leases last."""

    name = "freeze"

    @classmethod
    def draw(cls, chance, shape):
        return {"program": chance.choice(programs_of(shape))}

    @staticmethod
    def begin(stage, given):
        stage.mesh.programs[given["program"]].freeze()

    @staticmethod
    def end(stage, given):
        stage.mesh.programs[given["program"]].thaw()


class CutLink(Fault):
    """A connection breaks, and none can be made for a while."""

    name = "cut"

    @classmethod
    def draw(cls, chance, shape):
        return {"link": chance.choice(links_of(shape))}

    @staticmethod
    def begin(stage, given):
        stage.mesh.links[given["link"]].cut()

    @staticmethod
    def end(stage, given):
        stage.mesh.links[given["link"]].mend()


class SlowLink(CutLink):
    """Every piece comes late."""

    name = "slow"

    @classmethod
    def draw(cls, chance, shape):
        return {"link": chance.choice(links_of(shape)), "seconds": chance.choice([0.02, 0.1, 0.4])}

    @staticmethod
    def begin(stage, given):
        stage.mesh.links[given["link"]].slow(given["seconds"])


class HangLink(CutLink):
    """Nothing comes through, and neither end gets an error."""

    name = "hang"

    @classmethod
    def draw(cls, chance, shape):
        return {"link": chance.choice(links_of(shape)), "reset": chance.random() < 0.5}

    @staticmethod
    def begin(stage, given):
        stage.mesh.links[given["link"]].hang()

    @staticmethod
    def end(stage, given):
        stage.mesh.links[given["link"]].mend(given["reset"])


class FullDisk(Fault):
    """The disk of a program has no room for a while."""

    name = "full-disk"
    needs_disk = True

    @classmethod
    def draw(cls, chance, shape):
        if not shape["disks"]:
            return None
        return {"program": chance.choice(shape["disks"])}

    @staticmethod
    def begin(stage, given):
        with contextlib.suppress(OSError), (stage.mesh.disks[given["program"]] / "ballast").open("wb") as file:
            while True:
                file.write(b"\0" * (1 << 20))
                file.flush()

    @staticmethod
    def end(stage, given):
        FullDiskAlone.end(stage, given)
        if given["program"] != "controller":
            # NATS servers and ledgers write nothing more once their disk was full, until an operator
            # starts their programs again.
            stage.mesh.programs[given["program"]].kill()
            stage.mesh.programs[given["program"]].wanted = True


class FullDiskAlone(FullDisk):
    """The same to an initiator, and no operator looks after it."""

    name = "full-disk-alone"

    @classmethod
    def draw(cls, chance, shape):
        return {"program": "initiator0"} if "initiator0" in shape["disks"] else None

    @staticmethod
    def end(stage, given):
        (stage.mesh.disks[given["program"]] / "ballast").unlink(missing_ok=True)
