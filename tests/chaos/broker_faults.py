# SPDX-License-Identifier: Apache-2.0
"""Faults of what brokers and initiators have stored."""

import contextlib
import json
import shutil

import workload
from fault import Fault, programs_of
from nats_wire import NatsWire
from process_faults import Kill


class Wipe(Kill):
    """Brokers lose all that they have stored."""

    name = "wipe"

    @classmethod
    def draw(cls, chance, shape):
        names = [name for name in programs_of(shape) if name.startswith("nats")]
        if len(names) > 1 and chance.random() < 0.5:
            names = [chance.choice(names)]  # the others still have all of it
        return {"programs": names}

    @staticmethod
    def begin(stage, given):
        if len(given["programs"]) < stage.mesh.shape["nats"]:
            # A cluster of three survives the data of one, but not of two of them.
            [name] = given["programs"]
            stage.wiped = stage.wiped or name
            if stage.wiped != name:
                return
        for name in given["programs"]:
            stage.mesh.programs[name].kill()
        for name in given["programs"]:
            lose(stage.mesh.data_dir(name))


def lose(folder):
    """Removes all that lies in a data directory."""
    for stored in folder.glob("*"):
        if stored.is_dir():
            shutil.rmtree(stored)
        else:
            stored.unlink()


class WipeWhileBusy(Wipe):
    """The same to a batch that waits in its queue, while the job never comes to rest: from then on an
    item is at work until all others are counted."""

    name = "wipe-while-busy"
    known = "on a busy machine the batch is healed only after a minute: too late for the gate"
    PROCESSORS = ("processor0", "processor1")

    @classmethod
    def draw(cls, chance, shape):
        return {"programs": [name for name in programs_of(shape) if name.startswith("nats")],
                "batch": workload.draw_batch(chance, f"wiped {chance.randrange(10**6)}", "small")}

    @staticmethod
    def begin(stage, given):
        stage.busy = True
        for name in WipeWhileBusy.PROCESSORS:
            stage.mesh.programs[name].freeze()
        stage.clients.submit(given["batch"])

    @staticmethod
    def end(stage, given):
        Wipe.begin(stage, given)
        Wipe.end(stage, given)
        for name in WipeWhileBusy.PROCESSORS:
            stage.mesh.programs[name].thaw()


def for_stream(stage, queue, act):
    """Acts on the stream of a queue."""
    # A server that is down, or a message that is settled meanwhile, is no target.
    with contextlib.suppress(OSError, AssertionError, IndexError, json.JSONDecodeError):
        with contextlib.closing(NatsWire(stage.mesh.nats_addresses[0])) as nats:
            for stream in nats.api("STREAM.NAMES")["streams"] or ():
                if stream.startswith("MUSTER_") and stream.endswith(queue):
                    act(nats, stream)


class Deliveries(Fault):
    """Messages of a queue come twice, or in another order."""

    name = "deliveries"

    @classmethod
    def draw(cls, chance, shape):
        return {"queue": chance.choice(["in-0", "in-1", "out-0"]), "twice": chance.random() < 0.5}

    @staticmethod
    def begin(stage, given):
        for_stream(stage, given["queue"], lambda nats, stream: repeat(nats, stream, given["twice"]))


def repeat(nats, stream, twice):
    # The first ones go to the end.
    for sequence in nats.sequences(stream)[:5]:
        subject, data = nats.message(stream, sequence)
        nats.request(subject, data)
        if not twice:
            nats.api(f"STREAM.MSG.DELETE.{stream}", seq=sequence)


class Purge(Fault):
    """An operator empties a queue by mistake."""

    name = "purge"

    @classmethod
    def draw(cls, chance, shape):
        return {"queue": chance.choice(["in-0", "in-1", "out-0"])}

    @staticmethod
    def begin(stage, given):
        for_stream(stage, given["queue"], lambda nats, stream: nats.api(f"STREAM.PURGE.{stream}"))


class LoseStream(Purge):
    """A queue's messages are gone with their stream; what lies aside (poison, attempts) is not."""

    name = "lose-stream"

    @staticmethod
    def begin(stage, given):
        for_stream(stage, given["queue"], lambda nats, stream: nats.api(f"STREAM.DELETE.{stream}"))


class LoseLedger(Fault):
    """Results wait for a controller, and the ledger of their batches is lost for good."""

    name = "lose-ledger"
    known = ("a retry of a request whose ledger is lost is never answered, as docs/reliability.md says, "
             "and results without a ledger are poison only after ten minutes")

    @classmethod
    def draw(cls, chance, shape):
        return {"programs": ["controller", "initiator0"]}

    @staticmethod
    def begin(stage, given):
        for name in given["programs"]:
            stage.mesh.programs[name].kill()
        lose(stage.mesh.data_dir("initiator0"))

    @staticmethod
    def end(stage, given):
        for name in given["programs"]:
            stage.mesh.programs[name].wanted = True
