# SPDX-License-Identifier: Apache-2.0
"""Serves a handler: the protocol of docs/grpc_handlers.md, around a function that works on an item."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
import logging
import pathlib
import queue
import signal
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Callable, Optional, cast

import grpc

from muster._channel import Path
from muster._output import OutputColumn, to_columns, to_words
from muster._report import Group, to_group
from muster._results import Results
from muster._work import check_done
from muster.v1 import handler_service_pb2, handler_service_pb2_grpc, job_schema_pb2

PROTOCOL_VERSION = 1
# Of the 4 MiB that a message may have; the rest is for what is around an answer.
_MAX_ANSWER_BYTES = (4 << 20) - 1024
# As muster's processors take them.
_MAX_AFTER = datetime.timedelta(days=7)

log = logging.getLogger("muster")


class Outcome(Exception):
    """Raised by a handler: what becomes of the item instead of its results."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Retry(Outcome):
    """Try again, after some time, at most 7 days, or when the job's retry policy says; counts as an
    attempt."""

    def __init__(self, why: str, after: datetime.timedelta | None = None) -> None:
        super().__init__(why)
        self.after = after


class Defer(Retry):
    """Not now, and not the item's fault: as Retry, but the attempt does not count."""


class Dead(Outcome):
    """Will never work: to the poison queue at once."""


@dataclasses.dataclass(frozen=True)
class HandledJob:
    """The job that a processor calls for."""

    name: str
    revision: str
    columns: Sequence[str]
    groups: Mapping[str, Group]
    parameters: Mapping[str, str]  # the handler's `env` in the job file
    processor: str  # who calls; for logs
    outputs: Sequence[OutputColumn] = ()  # of the records that it may return


class Transaction:
    """One record of the input; `fields` are in the order of the job's columns."""

    def __init__(self, line: int, fields: Sequence[str], places: Mapping[str, int]) -> None:
        self.line = line
        self.fields = fields
        self._places = places

    def __getitem__(self, column: str) -> str:
        return self.fields[self._places[column]]


class Item:
    """A work item. It may come again, here or elsewhere: what is done outside of its results (a
    payment, a mail) must be idempotent by its name."""

    def __init__(self, job: HandledJob, item: handler_service_pb2.HandlerItem,
                 abandoned: threading.Event) -> None:
        places = {column: place for place, column in enumerate(job.columns)}
        self.job = job
        self.name = item.item
        self.attempt = item.attempt
        self.deadline = item.deadline.ToTimedelta()
        # W3C trace that the item's batch belongs to, for what `work` calls and records; "": none.
        self.traceparent = item.traceparent
        self.tracestate = item.tracestate
        self.transactions = [Transaction(sent.line, tuple(sent.fields), places)
                             for sent in item.transactions]
        self._abandoned = abandoned

    @property
    def abandoned(self) -> bool:
        """Nobody waits for the results any more; going on does no harm."""
        return self._abandoned.is_set()


Work = Callable[[Item, Results], None]
_Event = Optional[handler_service_pb2.HandlerAnswer]


class _Call:
    """One call of a processor: a thread hears its items, a pool works, the call's own thread answers."""

    def __init__(self, work: Work, job: HandledJob, pool: concurrent.futures.Executor) -> None:
        self._work = work
        self._job = job
        self._pool = pool
        self._mu = threading.Lock()
        self._open: dict[str, threading.Event] = {}  # unanswered items, and whether they are wanted
        self._ended = False
        # Answers; None: look whether all is done.
        self._answers: queue.SimpleQueue[_Event] = queue.SimpleQueue()

    def hear(self, requests: Iterator[handler_service_pb2.WorkRequest]) -> None:
        try:
            for request in requests:
                if request.HasField("item"):
                    self._begin(request.item)
                elif request.HasField("abandon"):
                    self._abandon(request.abandon.item)
        except Exception:  # gRPC raises a bare one when the call is cancelled
            self.give_up()
        self.end()

    def end(self) -> None:
        """Nothing new is begun; what there is, is answered."""
        with self._mu:
            self._ended = True
        self._answers.put(None)

    def give_up(self) -> None:
        """Nobody waits for any answer."""
        with self._mu:
            for abandoned in self._open.values():
                abandoned.set()
            self._open.clear()
        self.end()

    def answers(self) -> Iterator[handler_service_pb2.HandlerAnswer]:
        while True:
            answer = self._answers.get()
            if answer is not None:
                yield answer
            with self._mu:
                if self._ended and not self._open and self._answers.empty():
                    return

    def _begin(self, item: handler_service_pb2.HandlerItem) -> None:
        abandoned = threading.Event()
        with self._mu:
            if self._ended:
                return  # unanswered when the call ends with OK: no attempt counts
            self._open[item.item] = abandoned
        self._pool.submit(self._do, item, abandoned)

    def _abandon(self, item: str) -> None:
        with self._mu:
            if item in self._open:
                self._open.pop(item).set()
        self._answers.put(None)

    def _do(self, item: handler_service_pb2.HandlerItem, abandoned: threading.Event) -> None:
        if abandoned.is_set():
            return  # before it began
        answer = _answer(self._work, Item(self._job, item, abandoned))
        with self._mu:
            if self._open.get(item.item) is not abandoned:
                return
            # In one step, so that the call does not end between them.
            del self._open[item.item]
            self._answers.put(answer)


def _answer(work: Work, item: Item) -> handler_service_pb2.HandlerAnswer:
    answer = handler_service_pb2.HandlerAnswer(item=item.name)
    results = Results(item.job.groups, frozenset(sent.line for sent in item.transactions),
                      item.job.outputs)
    try:
        try:
            check_done(cast(Callable[..., object], work)(item, results))
            answer.ok.CopyFrom(results.to_proto())
            if answer.ByteSize() > _MAX_ANSWER_BYTES:
                raise Dead(f"the results have {answer.ByteSize()} bytes, more than a message may have")
        except Dead as dead:
            answer.dead.why = _why(dead.why)
        except Retry as retry:
            told: handler_service_pb2.Defer | handler_service_pb2.Retry = (
                answer.defer if isinstance(retry, Defer) else answer.retry)
            told.why = _why(retry.why)
            if retry.after is not None:
                told.after.FromTimedelta(min(max(retry.after, datetime.timedelta()), _MAX_AFTER))
    except BaseException as error:  # pylint: disable=broad-except
        # Only this item has failed: others of the call need not suffer for it. A sys.exit() ends no thread.
        log.exception("item %s failed", item.name)
        answer.retry.CopyFrom(handler_service_pb2.Retry(why=_why(error)))
    return answer


def _why(reason: object) -> str:
    return to_words(reason) or "no reason given"


class HandlerServer:
    """A server of HandlerService, as serve_handler starts it. Thread-safe."""

    def __init__(self, work: Work, *, version: str, name: str, concurrency: int,
                 columns: Collection[str], groups: Collection[str], max_processors: int) -> None:
        self._work = work
        self._ready = handler_service_pb2.Ready(name=name, version=version, concurrency=concurrency)
        self._needed = (("column", frozenset(columns)), ("group", frozenset(groups)))
        self._mu = threading.Lock()
        self._calls: set[_Call] = set()
        self._stopping = False
        # A call keeps a thread as long as its processor works for the job.
        # A second server at the same address is a mistake, not a helper.
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_processors),
                                   options=[("grpc.so_reuseport", 0)])
        cast(Any, handler_service_pb2_grpc).add_HandlerServiceServicer_to_server(self, self._server)
        self.address = ""

    def listen(self, address: str, credentials: grpc.ServerCredentials | None) -> None:
        host = address.rpartition(":")[0]
        try:
            port = (self._server.add_insecure_port(address) if credentials is None
                    else self._server.add_secure_port(address, credentials))
        except RuntimeError:
            port = 0  # as an older gRPC says it
        if port == 0:
            raise OSError(f"cannot listen on {address}")
        self.address = f"{host}:{port}"
        self._server.start()

    def run(self, grace: float = 30.0) -> None:
        """Serves until SIGTERM or SIGINT comes, then stops; a second one ends the program at once.
        On the main thread only, as all that has to do with signals."""
        told = threading.Event()
        before = {number: signal.signal(number, lambda *_: told.set())
                  for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            told.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.stop(grace)

    def stop(self, grace: float = 30.0) -> None:
        """Takes nothing new, answers what is at work for `grace` seconds, and ends. Again, it does
        nothing. What is not answered goes elsewhere, and counts as no attempt."""
        with self._mu:
            self._stopping = True
            calls = list(self._calls)
        for call in calls:
            call.end()
        self._server.stop(grace).wait()

    def __enter__(self) -> HandlerServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()

    # What HandlerService has.
    def Work(self, requests: Iterator[handler_service_pb2.WorkRequest],
             context: grpc.ServicerContext) -> Iterator[handler_service_pb2.WorkResponse]:
        job = self._accept(next(requests).hello, context)
        yield handler_service_pb2.WorkResponse(ready=self._ready)
        with concurrent.futures.ThreadPoolExecutor(self._ready.concurrency) as pool:
            call = _Call(self._work, job, pool)
            context.add_callback(call.give_up)
            hearing = threading.Thread(target=call.hear, args=(requests,), daemon=True)
            with self._mu:
                if self._stopping:
                    return
                self._calls.add(call)
            try:
                hearing.start()
                for answer in call.answers():
                    yield handler_service_pb2.WorkResponse(answer=answer)
            finally:
                with self._mu:
                    self._calls.discard(call)
                call.give_up()

    def _accept(self, hello: handler_service_pb2.Hello, context: grpc.ServicerContext) -> HandledJob:
        if hello.protocol_version != PROTOCOL_VERSION:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION,
                          f"{self._ready.name} speaks version {PROTOCOL_VERSION}, "
                          f"not {hello.protocol_version}")
        job = _job_of(hello.schema, dict(hello.parameters), hello.processor)
        for (kind, needed), there in zip(self._needed, (job.columns, job.groups)):
            missing = needed.difference(there)
            if missing:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION,
                              f"{self._ready.name} needs the {kind} {', '.join(sorted(missing))}, "
                              f"which job {job.name} does not have")
        return job


def _job_of(schema: job_schema_pb2.JobSchema, parameters: Mapping[str, str],
            processor: str) -> HandledJob:
    groups = {group.name: to_group(group) for group in schema.groups}
    return HandledJob(schema.job, schema.revision, tuple(schema.columns), groups, parameters,
                      processor, to_columns(schema.outputs))


def _credentials_of_files(certificate: Path, key: Path, ca: Path | None) -> grpc.ServerCredentials:
    """Those that the files hold at the time of each connection: certificates are renewed while a
    server runs. While the files cannot be read or do not fit each other, the last ones."""
    def read() -> tuple[bytes, bytes, bytes | None]:
        return (pathlib.Path(key).read_bytes(), pathlib.Path(certificate).read_bytes(),
                None if ca is None else pathlib.Path(ca).read_bytes())

    def configure(pems: tuple[bytes, bytes, bytes | None]) -> grpc.ServerCertificateConfiguration:
        # Without roots the gRPC of Debian 13 ends the process when it takes over a configuration. Where there is no
        # `ca`, clients are asked for no certificate, so the roots do not count.
        return grpc.ssl_server_certificate_configuration([pems[:2]], pems[2] or pems[1])

    last = read()

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal last
        try:
            now = read()
        except OSError:
            return None
        if now == last:
            return None
        last = now
        return configure(now)

    return grpc.dynamic_ssl_server_credentials(configure(last), renewed, ca is not None)


def serve_handler(work: Work, *, version: str, listen: str = "localhost:7800",
                  name: str | None = None, concurrency: int = 1, columns: Collection[str] = (),
                  groups: Collection[str] = (), ca: Path | None = None,
                  certificate: Path | None = None, key: Path | None = None,
                  max_processors: int = 64) -> HandlerServer:
    """Starts a server for a job's `handler: {grpc: …}`; `work` is called for each item, and fills its
    results. It may raise Retry, Defer or Dead; anything else that it raises is a Retry.

    `version` stands for what `work` computes; the job file must say the same. `concurrency` items of
    each processor come at a time, each on a thread of its own. Jobs without these `columns` and
    `groups` are refused. Port 0: one that is free; `address` of the server tells. `certificate` and
    `key` (PEM files) encrypt, and with `ca` processors must show one of its certificates. The files are
    read again for each connection.

    OSError: it cannot listen there.
    """
    server = HandlerServer(work, version=version, concurrency=concurrency, columns=columns,
                           groups=groups, max_processors=max_processors,
                           name=name or getattr(work, "__module__", "") or "python")
    credentials = None
    if certificate is not None and key is not None:
        credentials = _credentials_of_files(certificate, key, ca)
    elif certificate is not None or key is not None or ca is not None:
        raise ValueError("certificate and key go together, and a ca with them")
    server.listen(listen, credentials)
    return server
