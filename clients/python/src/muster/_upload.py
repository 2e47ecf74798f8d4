# SPDX-License-Identifier: Apache-2.0
"""Uploads a batch, and goes on where it was cut off."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Iterator
from typing import Callable, TypeVar

import grpc

from muster._channel import BatchStub, hear
from muster._content import Content
from muster._patience import Patience
from muster.errors import Cancelled, ErrorDetails, MusterError, OutOfRange, Unavailable
from muster.v1 import batch_service_pb2

# The server stops reading when a client runs further ahead of what is durable.
AHEAD_BYTES = 8 << 20


@dataclasses.dataclass(frozen=True)
class SubmitProgress:
    """How much of an upload the initiator has on its disk, and need not be sent again."""

    batch: int
    durable: int
    size: int | None  # of the content; None: not known yet


OnDurable = Callable[[int, int], None]
T = TypeVar("T")


class Unreadable(Exception):
    """The content cannot be read; its cause says why."""


class _Stream:
    """One stream of BatchService.Submit. gRPC's thread sends, the caller's hears."""

    def __init__(self, content: Content, header: batch_service_pb2.SubmitHeader,
                 on_durable: OnDurable, at_once: bool) -> None:
        self._content = content
        self._header = header
        self._on_durable = on_durable
        self._at_once = at_once
        self._heard = threading.Condition()
        self._accepted_at: int | None = None
        self._durable = 0
        self._ended = False
        self._unreadable: BaseException | None = None

    def run(self, stub: BatchStub) -> batch_service_pb2.BatchStatus | None:
        """What the seal was answered with; None: the server has ended the stream without."""
        sealed = None
        batch = 0
        try:
            with contextlib.closing(hear(lambda: stub.Submit(self._requests()))) as responses:
                for response in responses:
                    step = response.WhichOneof("step")
                    if step == "accepted":
                        batch = response.accepted.batch
                        self._hear(batch, response.accepted.durable_offset, accepted=True)
                    elif step == "durable":
                        self._hear(batch, response.durable.durable_offset)
                    elif step == "sealed":
                        sealed = response.sealed.status
        except MusterError:
            if self._unreadable is None:
                raise
        finally:
            with self._heard:
                self._ended = True
                self._heard.notify_all()
        if self._unreadable is not None:
            raise Unreadable from self._unreadable
        return sealed

    def _hear(self, batch: int, durable: int, accepted: bool = False) -> None:
        self._on_durable(batch, durable)
        with self._heard:
            if accepted:
                self._accepted_at = durable
            self._durable = max(self._durable, durable)
            self._heard.notify_all()

    def _requests(self) -> Iterator[batch_service_pb2.SubmitRequest]:
        # Before anything is heard: what is durable elsewhere is not kept here.
        sole = self._reading(self._content.sole_chunk) if self._at_once else None
        header = batch_service_pb2.SubmitHeader()
        header.CopyFrom(self._header)
        header.at_once = bool(sole)
        yield batch_service_pb2.SubmitRequest(header=header)
        if sole is not None:
            if sole:
                yield self._chunk(0, sole)
            yield self._seal()
            return
        offset = self._await_accepted()
        while offset is not None and self._await_room(offset):
            data = self._reading(functools.partial(self._content.take, offset))
            if not data:
                yield self._seal()
                return
            yield self._chunk(offset, data)
            offset += len(data)

    @staticmethod
    def _chunk(offset: int, data: bytes) -> batch_service_pb2.SubmitRequest:
        return batch_service_pb2.SubmitRequest(
            chunk=batch_service_pb2.SubmitChunk(offset=offset, data=data))

    def _seal(self) -> batch_service_pb2.SubmitRequest:
        return batch_service_pb2.SubmitRequest(seal=batch_service_pb2.SubmitSeal(
            size=self._content.size(), content_hash=self._content.digest()))

    def _reading(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except BaseException as error:
            # gRPC cancels the call of an iterator that fails.
            self._unreadable = error
            raise

    def _await_accepted(self) -> int | None:
        with self._heard:
            self._heard.wait_for(lambda: self._ended or self._accepted_at is not None)
            return None if self._ended else self._accepted_at

    def _await_room(self, sent: int) -> bool:
        """Whether there is any: False when the stream has ended."""
        with self._heard:
            self._heard.wait_for(lambda: self._ended or sent < self._durable + AHEAD_BYTES)
            return not self._ended


class Upload:
    """All streams that it takes to get a batch across."""

    def __init__(self, content: Content, header: batch_service_pb2.SubmitHeader,
                 size: int | None, progress: Callable[[SubmitProgress], None] | None) -> None:
        self._content = content
        self._header = header
        self._size = size
        self._progress = progress
        self._batch: int | None = None
        self._durable = 0  # at most, so far
        self._news = False

    def run(self, stub: BatchStub, patience: Patience) -> batch_service_pb2.BatchStatus:
        # Most batches are new. Of one that is not, the initiator says so, and is then asked first.
        at_once = True
        while True:
            self._news = False
            try:
                sealed = _Stream(self._content, self._header, self._on_durable, at_once).run(stub)
                if sealed is not None:
                    return sealed
                trouble: MusterError = Unavailable(
                    grpc.StatusCode.UNAVAILABLE, "the initiator ended the upload early")
            except MusterError as error:
                trouble = error
            was_at_once, at_once = at_once, False
            if was_at_once and isinstance(trouble, OutOfRange):
                continue
            if self._news:
                patience.refresh()
            patience.wait_after(trouble, "the upload")

    def _on_durable(self, batch: int, durable: int) -> None:
        # A batch that was cancelled meanwhile is not begun anew behind its submitter's back.
        if self._batch not in (None, batch):
            raise Cancelled(grpc.StatusCode.CANCELLED, f"batch {self._batch} was cancelled",
                            ErrorDetails(reason="BATCH_CANCELLED"))
        # Not that the header is accepted once more: what comes behind it may fail each time.
        self._news = self._news or self._batch is None or durable > self._durable
        self._batch = batch
        self._durable = max(self._durable, durable)
        self._content.forget(durable)
        if self._progress is not None:
            self._progress(SubmitProgress(batch, durable, self._size))
