# SPDX-License-Identifier: Apache-2.0
"""Faults of the files in which initiators keep the content that items refer to."""

import contextlib
import os
import time

import workload
from fault import Fault

UPLOAD_SECONDS = 1.0  # for a batch's content to arrive
POLL_SECONDS = 0.005
PROCESSORS = ("processor0", "processor1")
# Every digit becomes another one: a line stays one, with another amount.
OTHER_DIGITS = bytes.maketrans(b"0123456789", b"1234567890")
AWAY = ".away"


def uploads_of(stage):
    """Returns the files with the content of batches, whole or not."""
    return {path for number in range(stage.mesh.shape["initiators"])
            for path in (stage.mesh.data_dir(f"initiator{number}") / "uploads").glob("*")
            if path.suffix != AWAY}


class ContentFault(Fault):
    """Acts on all uploads, one of which belongs to a batch that no processor has begun."""

    seconds = 2.0

    @classmethod
    def draw(cls, chance, shape):
        kind = chance.choice(["small", "rejects", "moody", "large"])
        name = f"{cls.name} {chance.randrange(10**6)}"
        return {"batch": workload.draw_batch(chance, name, kind, padded=True),
                "arriving": chance.random() < 0.3, "pause": chance.choice([0.0, 0.2])}

    @classmethod
    def begin(cls, stage, given):
        for name in PROCESSORS:
            stage.mesh.programs[name].freeze()
        before = uploads_of(stage)
        stage.clients.submit(given["batch"])
        end = time.monotonic() + UPLOAD_SECONDS
        while time.monotonic() < end and not cls.has_come(uploads_of(stage) - before, given):
            time.sleep(POLL_SECONDS)
        time.sleep(given["pause"])  # after it, the batch is split
        stage.undo[given["batch"]["request"]] = cls.act(stage, uploads_of(stage))
        for name in PROCESSORS:
            stage.mesh.programs[name].thaw()

    @staticmethod
    def has_come(uploads, given):
        return any(given["arriving"] or not path.suffix for path in uploads)

    @staticmethod
    def end(stage, given):
        stage.undo.pop(given["batch"]["request"])()


class DamageContent(ContentFault):
    """Bytes of uploads are others for a while."""

    name = "damage-content"

    @classmethod
    def act(cls, stage, uploads):
        files = contextlib.ExitStack()
        damaged = []
        for path in uploads:
            with contextlib.suppress(FileNotFoundError):  # it has another name by now
                file = files.enter_context(path.open("r+b", buffering=0))
                status = os.fstat(file.fileno())
                if status.st_ino in stage.damaged:  # by another fault, which puts it back
                    continue
                stage.damaged.add(status.st_ino)
                place = status.st_size // 4
                file.seek(place)
                good = file.read(status.st_size // 2)
                write_at(file, place, good.translate(OTHER_DIGITS))
                damaged.append((file, place, good))

        def undo():
            with files:
                for file, place, good in damaged:
                    write_at(file, place, good)
                    stage.damaged.discard(os.fstat(file.fileno()).st_ino)
        return undo


def write_at(file, place, data):
    file.seek(place)
    file.write(data)


def put_back(path):
    back = path.with_suffix("")
    # Its sender may have sent it again meanwhile.
    if back.exists() or back.with_suffix("").exists():
        path.unlink()
    else:
        path.rename(back)


class HideContent(ContentFault):
    """Uploads are not there for a while."""

    name = "hide-content"

    @classmethod
    def act(cls, stage, uploads):
        for path in uploads:
            with contextlib.suppress(FileNotFoundError):
                path.rename(path.with_name(path.name + AWAY))

        def undo():
            for number in range(stage.mesh.shape["initiators"]):
                # The data directory may have moved.
                folder = stage.mesh.data_dir(f"initiator{number}") / "uploads"
                for path in folder.glob(f"*{AWAY}"):
                    put_back(path)
        return undo
