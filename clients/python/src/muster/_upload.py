"""Uploads a batch, and goes on where it was cut off."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator
from typing import Callable

import grpc

from muster._channel import BatchStub, hear
from muster._content import Content
from muster._patience import Patience
from muster.errors import Cancelled, ErrorDetails, MusterError, Unavailable
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


class Unreadable(Exception):
    """The content cannot be read; its cause says why."""


class _Stream:
    """One stream of BatchService.Submit. gRPC's thread sends, the caller's hears."""

    def __init__(self, content: Content, header: batch_service_pb2.SubmitHeader,
                 on_durable: OnDurable) -> None:
        self._content = content
        self._header = header
        self._on_durable = on_durable
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
        yield batch_service_pb2.SubmitRequest(header=self._header)
        offset = self._await_accepted()
        while offset is not None and self._await_room(offset):
            try:
                data = self._content.take(offset)
            except BaseException as error:
                # gRPC cancels the call of an iterator that fails.
                self._unreadable = error
                raise
            if not data:
                yield batch_service_pb2.SubmitRequest(seal=batch_service_pb2.SubmitSeal(
                    size=self._content.size(), content_hash=self._content.digest()))
                return
            yield batch_service_pb2.SubmitRequest(
                chunk=batch_service_pb2.SubmitChunk(offset=offset, data=data))
            offset += len(data)

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
        self._news = False

    def run(self, stub: BatchStub, patience: Patience) -> batch_service_pb2.BatchStatus:
        while True:
            self._news = False
            try:
                sealed = _Stream(self._content, self._header, self._on_durable).run(stub)
                if sealed is not None:
                    return sealed
                trouble: MusterError = Unavailable(
                    grpc.StatusCode.UNAVAILABLE, "the initiator ended the upload early")
            except MusterError as error:
                trouble = error
            if self._news:
                patience.refresh()
            patience.wait_after(trouble, "the upload")

    def _on_durable(self, batch: int, durable: int) -> None:
        # A batch that was cancelled meanwhile is not begun anew behind its submitter's back.
        if self._batch not in (None, batch):
            raise Cancelled(grpc.StatusCode.CANCELLED, f"batch {self._batch} was cancelled",
                            ErrorDetails(reason="BATCH_CANCELLED"))
        self._batch = batch
        self._news = True
        self._content.forget(durable)
        if self._progress is not None:
            self._progress(SubmitProgress(batch, durable, self._size))
