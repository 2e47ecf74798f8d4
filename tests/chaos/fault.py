# SPDX-License-Identifier: Apache-2.0
"""What a fault of a run is, and what of a mesh it may hit."""

ROLES = ("initiator", "controller", "processor", "agent", "nats")


def programs_of(shape):
    """Returns the names of a mesh's programs."""
    names = [f"nats{number}" for number in range(shape["nats"])]
    names += [f"initiator{number}" for number in range(shape["initiators"])]
    return names + ["controller", "processor0", "processor1"] + ["agent"] * shape["agent"]


def links_of(shape):
    called = [name for name in programs_of(shape) if name.startswith(("initiator", "controller"))]
    roles = [name for name in programs_of(shape) if not name.startswith("nats")]
    return called + [f"{role}-nats{number}" for role in roles for number in range(shape["nats"])]


class Fault:
    """Is drawn from the run's seed, begins, and ends some time later. `stage` is the run's driver: it
    has the mesh and its clients."""

    name = ""
    # Why an ordinary run does not have it: the mesh is known not to stand it, or it takes too long.
    known = None
    needs_disk = False
    initiators = 1  # that the mesh must have
    seconds = 0  # that it lasts at least

    @classmethod
    def draw(cls, chance, shape):
        """Returns the arguments of one such fault as a dictionary, or None where the mesh has nothing
        for it."""
        raise NotImplementedError

    @staticmethod
    def begin(stage, given):
        pass

    @staticmethod
    def end(stage, given):
        pass
