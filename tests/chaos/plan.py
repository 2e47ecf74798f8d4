# SPDX-License-Identifier: Apache-2.0
"""What a run will do, as a pure function of its seed and of the faults that it may use."""

import random

import workload

# How long the mesh is under attack; a run takes some seconds more to start and to heal.
CHAOS_SECONDS = 5.0
KINDS = ("small", "small", "small", "rejects", "moody", "doomed", "held") * 2 + (
    "large", "large moody", "large doomed")


def draw_shape(chance, kinds, has_disks):
    """Returns the mesh: how many of which programs, and which of them have a small disk; how its job's
    content travels, and whether a processor has it sent that could read it on its own host."""
    initiators = max(kind.initiators for kind in kinds) if chance.random() < 0.3 else 1
    shape = {"nats": 3 if chance.random() < 0.2 else 1, "initiators": initiators,
             "agent": chance.random() < 0.3, "disks": [],
             "content": "inline" if chance.random() < 1 / 3 else "reference",
             "content_sent": chance.random() < 0.5}
    if has_disks and any(kind.needs_disk for kind in kinds):
        shape["disks"] = [name for name in ("initiator0", "controller", "nats0")
                          if chance.random() < 0.5]
    return shape


def draw_batches(chance):
    """Returns the submits, and the cancels of batches that cannot be complete by then."""
    steps = []
    for number in range(chance.randint(4, 8)):
        batch = workload.draw_batch(chance, f"request {number}", chance.choice(KINDS))
        at = chance.uniform(0, CHAOS_SECONDS * 0.8)
        steps.append((at, "submit", {"batch": batch}))
        if chance.random() < 0.3:  # another client has the same request
            steps.append((at + chance.uniform(0, 1), "submit", {"batch": batch}))
        if batch["kind"] == "held":
            steps.append((at + chance.uniform(0.1, 1.5), "cancel", {"request": batch["request"]}))
    return steps


def draw_faults(chance, kinds, shape):
    steps = []
    for number in range(chance.randint(2, 5)):
        kind = chance.choice(kinds)
        given = kind.draw(chance, shape)
        if given is None:
            continue
        begin = chance.uniform(0.2, CHAOS_SECONDS - max(0.5, kind.seconds))
        fault = {"number": number, "kind": kind.name, "given": given}
        steps.append((begin, "begin", fault))
        lasts = chance.choice([0.1, 0.5, 1.0, workload.LEASE_SECONDS + 1.0])
        steps.append((min(begin + max(lasts, kind.seconds), CHAOS_SECONDS), "end", fault))
    return steps


def draw(seed, kinds, has_disks):
    """Returns {seed, shape, steps}; steps are [seconds, action, arguments], in order."""
    chance = random.Random(seed)
    shape = draw_shape(chance, kinds, has_disks)
    steps = draw_batches(chance) + draw_faults(chance, kinds, shape)
    steps += [(chance.uniform(0, CHAOS_SECONDS), "mend moods", {}),
              *((chance.uniform(0, CHAOS_SECONDS), "redrive", {}) for _ in range(2))]
    steps.sort(key=lambda step: step[0])
    return {"seed": seed, "shape": shape, "steps": [list(step) for step in steps]}
