# SPDX-License-Identifier: Apache-2.0
"""EventProducer and EventProcessor: append to event streams, and read them as a member of a group."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import datetime
import queue
import threading
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Callable, cast

import grpc

from muster._batch import to_time
from muster._channel import Path, StreamStub, Tls, ask, open_channel, stream_stub
from muster._output import to_words
from muster._patience import may_pass
from muster._work import check_done
from muster.errors import MusterError, from_rpc, make_error
from muster.v1 import stream_service_pb2 as pb

# Waits between two calls of a processor whose server was lost.
_MIN_WAIT = 0.2
_MAX_WAIT = 5.0


@dataclasses.dataclass(frozen=True)
class EventPlace:
    """Where an event lies."""

    partition: int
    offset: int


@dataclasses.dataclass(frozen=True)
class Event:
    """An event of a partition."""

    offset: int
    appended: datetime.datetime
    key: bytes
    body: bytes
    properties: Mapping[str, bytes]


@dataclasses.dataclass(frozen=True)
class ProcessorError:
    """What failed; the processor goes on."""

    partition: int  # -1: none
    operation: str  # "open", "read", "handle", "retention", "beyond end", "lost" or "membership"
    error: BaseException
    events_lost: int = 0  # of "retention" and "lost"


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


class EventProducer:
    """Appends to one stream of a mesh. Thread-safe; to be closed, or used in a `with`."""

    def __init__(self, address: str, stream: str, *, ca: Path | None = None,
                 certificate: Path | None = None, key: Path | None = None,
                 timeout: float = 30.0) -> None:
        """`address` is an initiator's HOST:PORT; the files are as those of Client."""
        self._channel = open_channel(address, Tls(ca, certificate, key))
        self._streams = stream_stub(self._channel)
        self._stream = stream
        self._timeout = timeout

    def send(self, body: str | bytes, *, key: str | bytes = b"", partition: int | None = None,
             properties: Mapping[str, str | bytes] | None = None) -> EventPlace:
        """Appends an event: to `partition`; else to that of its key; else to the next in turn.
        Returns when it is durable. A call whose outcome is unknown is repeated, and the event may
        come twice.
        """
        event = pb.StreamEvent(key=_bytes(key), body=_bytes(body))
        for name, value in (properties or {}).items():
            event.properties[name] = _bytes(value)
        return self._append([event], partition)[0]

    def send_many(self, events: Iterable[tuple[str | bytes, str | bytes]]) -> Sequence[EventPlace]:
        """The same for pairs of key and body, at most 1,000 and 3 MiB; the places are in their
        order. After an error any of them may have been appended.
        """
        return self._append([pb.StreamEvent(key=_bytes(key), body=_bytes(body))
                             for key, body in events], None)

    def _append(self, events: list[pb.StreamEvent], partition: int | None) -> list[EventPlace]:
        request = pb.AppendEventsRequest(stream=self._stream, partition=partition, events=events)
        response = ask(self._streams.AppendEvents, request, self._timeout)
        return [EventPlace(place.partition, place.offset) for place in response.places]

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> EventProducer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class PartitionContext:
    """A partition that this member owns, from its opening to its close."""

    def __init__(self, session: _Session, partition: int, epoch: int, begins_at: int) -> None:
        self._session = session
        self.partition = partition
        self.epoch = epoch  # a later owner has a higher one: what is written elsewhere can check it
        self.begins_at = begins_at

    def update_checkpoint(self, event: Event) -> None:
        """Saves that `event` and all before it are done with; the group goes on behind it. To be
        called by `on_event` and `on_partition_closing`, as often as they like.

        FailedPrecondition: another member may own the partition. Aborted: a replay has moved the
        checkpoint, and the partition is opened again there.
        """
        self._session.save(self.partition, event.offset)


OnEvent = Callable[[PartitionContext, Event], None]
OnError = Callable[[ProcessorError], None]


class EventProcessor:
    """Reads a stream as a member of a group: with the group's others it shares the partitions, and
    gets the events of each that it owns in order, each at least once.

        with EventProcessor("localhost:7700", "homes", "store") as processor:
            processor.run(on_event=handle, on_error=print)

    The server owns the partitions for this process as long as its call lives, so they go to others
    when the process dies. One event of a partition is on its way at a time.
    """

    def __init__(self, address: str, stream: str, group: str, *, member: str = "",
                 begin_at: int = 0, interval: float | None = None, max_concurrency: int = 16,
                 ca: Path | None = None, certificate: Path | None = None,
                 key: Path | None = None) -> None:
        """`begin_at` says where the group begins in a partition without a checkpoint: 0 with the
        first event that is kept, -1 behind the last. `max_concurrency` partitions are handled at
        once. `interval` is that of the group's cycles, in seconds; all members have the same.
        """
        self._channel = open_channel(address, Tls(ca, certificate, key))
        self._streams = stream_stub(self._channel)
        self._start = pb.ProcessEventsStart(
            stream=stream, group=group, member=member, begin_at=begin_at)
        if interval is not None:
            self._start.interval.FromTimedelta(datetime.timedelta(seconds=interval))
        self._workers = max_concurrency
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._session: _Session | None = None

    def run(self, on_event: OnEvent, on_error: OnError | None = None, *,
            on_partition_initializing: Callable[[PartitionContext], None] | None = None,
            on_partition_closing: Callable[[PartitionContext, str], None] | None = None) -> None:
        """Handles events until `stop`. Calls for one partition never overlap, those for different
        ones do. If `on_event` raises, `on_error` is told, and the event comes again after growing
        waits. `on_partition_closing` hears why: "handed over", "shutdown", "replayed" or "lost".

        A lost server is called again until `stop`. Raises what cannot pass by itself, such as
        NotFound, and FailedPrecondition when another member has started with this one's name.
        """
        handlers = _Handlers(on_event, on_error or (lambda error: None), on_partition_initializing,
                             on_partition_closing)
        wait = _MIN_WAIT
        while not self._stopping.is_set():
            session = _Session(handlers, self._start, self._workers)
            with self._lock:
                self._session = session
            if self._stopping.is_set():
                session.stop()
            try:
                session.run(self._streams)
                return
            except MusterError as lost:
                if not may_pass(lost):
                    raise
                handlers.tell(ProcessorError(-1, "open", lost))
                wait = _MIN_WAIT if session.started else min(2 * wait, _MAX_WAIT)
                self._stopping.wait(wait)

    def stop(self) -> None:
        """Has `run` finish the events in hand, close the partitions, and return. From any thread."""
        self._stopping.set()
        with self._lock:
            if self._session is not None:
                self._session.stop()

    def close(self) -> None:
        self.stop()
        self._channel.close()

    def __enter__(self) -> EventProcessor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()


class _Handlers:
    """What the user provides."""

    def __init__(self, on_event: OnEvent, on_error: OnError,
                 on_initializing: Callable[[PartitionContext], None] | None,
                 on_closing: Callable[[PartitionContext, str], None] | None) -> None:
        self.on_event = on_event
        self.on_initializing = on_initializing
        self.on_closing = on_closing
        self._on_error = on_error
        self._one = threading.Lock()

    def tell(self, error: ProcessorError) -> None:
        with self._one:
            self._on_error(error)


class _Session:
    """One call of ProcessEvents."""

    def __init__(self, handlers: _Handlers, start: pb.ProcessEventsStart,
                 workers: int) -> None:
        self.started = False
        self._handlers = handlers
        self._requests: queue.SimpleQueue[pb.ProcessEventsRequest | None] = queue.SimpleQueue()
        self._requests.put(pb.ProcessEventsRequest(start=start))
        self._workers = workers
        self._lock = threading.Lock()
        self._contexts: dict[int, PartitionContext] = {}
        # By partition, in the order of their answers.
        self._saves: dict[int, collections.deque[concurrent.futures.Future[None]]] = {}
        self._over = False

    def run(self, streams: StreamStub) -> None:
        call = streams.ProcessEvents(iter(self._requests.get, None))
        pool = concurrent.futures.ThreadPoolExecutor(self._workers)
        try:
            for response in call:
                if response.WhichOneof("message") == "ended":
                    self._check_end(response.ended)
                    return
                self._take(response, pool)
            raise make_error(grpc.StatusCode.UNAVAILABLE, "the server has ended the call")
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        finally:
            self._requests.put(None)
            self._end()
            call.cancel()
            pool.shutdown()

    def stop(self) -> None:
        self._requests.put(pb.ProcessEventsRequest(
            stop=pb.ProcessEventsStop()))

    def save(self, partition: int, offset: int) -> None:
        saved: concurrent.futures.Future[None] = concurrent.futures.Future()
        with self._lock:
            if self._over:
                raise make_error(grpc.StatusCode.UNAVAILABLE, "the server is lost")
            self._saves.setdefault(partition, collections.deque()).append(saved)
            self._requests.put(pb.ProcessEventsRequest(
                checkpoint=pb.SaveCheckpoint(partition=partition, offset=offset)))
        saved.result()

    @staticmethod
    def _check_end(ended: pb.ProcessingEnded) -> None:
        if ended.code != 0:
            raise _error(ended.code, ended.message)

    def _end(self) -> None:
        """Lets go of who waits for a checkpoint."""
        with self._lock:
            self._over = True
            waiting = [saved for saves in self._saves.values() for saved in saves]
            self._saves.clear()
        for saved in waiting:
            saved.set_exception(make_error(grpc.StatusCode.UNAVAILABLE, "the server is lost"))

    def _take(self, response: pb.ProcessEventsResponse,
              pool: concurrent.futures.ThreadPoolExecutor) -> None:
        kind = response.WhichOneof("message")
        if kind == "member":
            self.started = True
        elif kind == "saved":
            self._resolve(response.saved)
        elif kind == "error":
            told = response.error
            if told.operation != "handle":  # those of this process have been told
                self._handlers.tell(ProcessorError(told.partition, told.operation,
                                                   _error(told.code, told.message),
                                                   told.events_lost))
        elif kind == "opened":
            opened = response.opened
            context = PartitionContext(self, opened.partition, opened.epoch, opened.begins_at)
            with self._lock:
                self._contexts[opened.partition] = context
            if self._handlers.on_initializing is not None:
                initialize = self._handlers.on_initializing
                self._guard(opened.partition, lambda: initialize(context))
        elif kind == "event":
            pool.submit(self._handle, response.event.partition, response.event.event)
        elif kind == "closing":
            pool.submit(self._close, response.closing.partition, response.closing.reason)

    def _resolve(self, answer: pb.CheckpointSaved) -> None:
        with self._lock:
            saves = self._saves.get(answer.partition)
            if not saves:
                return
            saved = saves.popleft()
        if answer.code == 0:
            saved.set_result(None)
        else:
            saved.set_exception(_error(answer.code, answer.message))

    def _context(self, partition: int) -> PartitionContext:
        with self._lock:
            return self._contexts[partition]

    def _handle(self, partition: int, event: pb.StreamEvent) -> None:
        error = "failed"
        try:
            error = self._guard(partition, lambda: self._handlers.on_event(
                self._context(partition),
                Event(event.offset, to_time(event.appended), event.key,
                      event.body, dict(event.properties))))
        finally:  # the server waits for it, whatever on_error raises, or a sys.exit()
            self._answer(partition, error)

    def _close(self, partition: int, reason: int) -> None:
        name = pb.PartitionCloseReason.Name(cast(pb.PartitionCloseReason, reason))
        words = name.replace("PARTITION_CLOSE_REASON_", "").replace("_", " ").lower()
        try:
            if self._handlers.on_closing is not None:
                closing = self._handlers.on_closing
                self._guard(partition, lambda: closing(self._context(partition), words))
        finally:
            self._answer(partition, "")

    def _answer(self, partition: int, error: str) -> None:
        self._requests.put(pb.ProcessEventsRequest(
            handled=pb.PartitionHandled(partition=partition, error=error)))

    def _guard(self, partition: int, call: Callable[[], object]) -> str:
        """What `call` raised, in words; "": nothing."""
        try:
            check_done(call())
        except Exception as error:  # pylint: disable=broad-except
            self._handlers.tell(ProcessorError(partition, "handle", error))
            return to_words(error)
        return ""


def _error(code: int, message: str) -> MusterError:
    for known in grpc.StatusCode:
        if cast(Any, known).value[0] == code:
            return make_error(known, message)
    return make_error(grpc.StatusCode.UNKNOWN, message)
