"""Client: submits batches to a mesh, follows them, and reads what was counted."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Callable, Union

import grpc

from muster._batch import Batch, BatchState, to_batch
from muster._channel import (Path, Tls, ask, batch_stub, hear, job_stub, mesh_stub, open_channel,
                             report_stub)
from muster._content import Content, Source, opened
from muster._patience import Patience
from muster._report import Group, Receipt, ReportRow, to_group, to_receipt, to_row
from muster._upload import SubmitProgress, Unreadable, Upload
from muster.errors import InvalidArgument, InvalidJob, JobProblem, MusterError, Unavailable
from muster.v1 import (batch_pb2, batch_service_pb2, heartbeat_pb2, job_service_pb2,
                       mesh_service_pb2, report_service_pb2)

AnyBatch = Union[Batch, int]


@dataclasses.dataclass(frozen=True)
class Job:
    """A job as the mesh keeps it."""

    name: str
    revision: str
    revised: bool  # results are decided otherwise than before; True for a new job
    columns: Sequence[str]
    groups: Sequence[Group]


class Client:
    """Talks to a mesh. Thread-safe; to be closed, or used in a `with`.

    Every method raises a MusterError. A call that is answered Unavailable is tried again for some
    seconds, and within `timeout`. Uploads and watches go on where they were cut off; they give up
    after `patience` seconds without news.
    """

    def __init__(self, server: str = "localhost:7700", *, ca: Path | None = None,
                 certificate: Path | None = None, key: Path | None = None,
                 controller: str | None = None, timeout: float = 30.0,
                 patience: float = 120.0) -> None:
        """`server` is an initiator's HOST:PORT, `controller` that of the one which has the report;
        without it, the initiator is asked.

        Plaintext, unless one of these PEM files is named: `ca` has the roots that the servers'
        certificates must come from, without it gRPC's own are taken; `certificate` and `key` say
        who asks, where servers demand that.
        """
        self._tls = Tls(ca, certificate, key)
        self._timeout = timeout
        self._patience = patience
        self._controller = controller
        self._channel = open_channel(server, self._tls)
        self._batches = batch_stub(self._channel)
        self._jobs = job_stub(self._channel)
        self._mesh = mesh_stub(self._channel)

    def close(self) -> None:
        """Cancels what still runs."""
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    # Jobs.

    def apply_job(self, path_or_text: str | os.PathLike[str],
                  expected_revision: str | None = None) -> Job:
        """Makes a job, or replaces its definition. A text of several lines is the definition itself,
        anything else the path of one.

        InvalidJob: it has mistakes, which `problems` lists. Aborted: the job is not at
        `expected_revision`; "" expects that there is none.
        """
        if isinstance(path_or_text, str) and "\n" in path_or_text:
            definition = path_or_text
        else:
            definition = pathlib.Path(path_or_text).read_text(encoding="utf-8")
        request = job_service_pb2.ApplyJobRequest(definition=definition)
        if expected_revision is not None:
            request.expected_revision = expected_revision
        try:
            response = ask(self._jobs.ApplyJob, request, self._timeout)
        except InvalidArgument as refused:
            if any(found.field == "definition" for found in refused.violations):
                raise self._explained(refused, definition) from None
            raise
        job = response.job
        return Job(job.name, job.revision, response.revised, tuple(job.schema.columns),
                   tuple(map(to_group, job.schema.groups)))

    def _explained(self, refused: InvalidArgument, definition: str) -> InvalidArgument:
        try:
            response = ask(self._jobs.CheckJob,
                           job_service_pb2.CheckJobRequest(definition=definition), self._timeout)
        except MusterError:
            return refused  # it says enough
        return InvalidJob(refused, [JobProblem(found.line, found.column, found.message)
                                    for found in response.problems])

    # Batches.

    def submit(self, job: str, content: Source, request_id: str | bytes | None = None,
               progress: Callable[[SubmitProgress], None] | None = None, *,
               handler_version: str | None = None, tenant: str = "", traceparent: str = "",
               tracestate: str = "") -> Batch:
        """Uploads a batch, and returns when it is durable as a whole.

        `content` is a path, the bytes themselves, a file that is open for reading bytes, or
        anything that yields bytes, in pieces of any size. It is read once where `request_id` is
        given, and of what was read at most some 10 MiB are kept.

        The same `request_id` never makes a second batch: submit again after a crash, and the upload
        goes on where the initiator's disk ends. Without one, content that can be read twice names
        itself, as with `muster batch submit`; what cannot be is a new batch each time.

        `traceparent` is the W3C trace that the batch belongs to, and `tracestate` what comes with it.
        Without one, a tracing library's interceptor may name it, or the batch begins its own.

        `progress` is called whenever more is durable, on the calling thread. Statuses are those of
        BatchService.Submit.
        """
        with opened(content) as source:
            if request_id is None:
                digest = source.digest()
                request_id = f"{job}:{digest}" if digest is not None else f"python:{uuid.uuid4()}"
            size = source.size()
            header = batch_service_pb2.SubmitHeader(
                job=job, tenant=tenant, size_hint=size or 0, traceparent=traceparent,
                tracestate=tracestate,
                request_id=request_id.encode() if isinstance(request_id, str) else request_id)
            if handler_version is not None:
                header.handler_version = handler_version
            upload = Upload(Content(source.pieces), header, size, progress)
            try:
                return to_batch(upload.run(self._batches, Patience(self._patience)))
            except Unreadable as unreadable:
                cause = unreadable.__cause__
                raise cause if cause is not None else unreadable

    def watch(self, batch: AnyBatch, *, after_revision: int = 0,
              timeout: float | None = None) -> Iterator[Batch]:
        """The batch, at once and whenever it has changed, until it is complete or cancelled.

        Each has a higher revision than the one before; those up to `after_revision` are known.
        DeadlineExceeded: it was not over within `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        patience = Patience(self._patience, deadline)
        request = batch_service_pb2.WatchBatchRequest(batch=_number(batch),
                                                      after_revision=after_revision)
        while True:
            over = False
            left = patience.remaining()
            try:
                with contextlib.closing(
                        hear(lambda: self._batches.WatchBatch(request, timeout=left))) as statuses:
                    for response in statuses:
                        patience.refresh()
                        now = to_batch(response.status)
                        request.after_revision = now.revision
                        over = now.over
                        yield now
                if over:
                    return
                trouble: MusterError = Unavailable(
                    grpc.StatusCode.UNAVAILABLE, "the initiator ended the watch early")
            except MusterError as error:
                trouble = error
            patience.wait_after(trouble, "the watch")

    def wait(self, batch: AnyBatch, timeout: float | None = None) -> Batch:
        """The batch when it is complete or cancelled. DeadlineExceeded: not within `timeout` seconds."""
        last: Batch | None = None
        for last in self.watch(batch, timeout=timeout):
            pass
        if last is None:
            raise AssertionError("a watch ends with a status")
        return last

    def get(self, batch: AnyBatch) -> Batch:
        """Where the batch stands now."""
        request = batch_service_pb2.GetBatchRequest(batch=_number(batch))
        return to_batch(ask(self._batches.GetBatch, request, self._timeout).status)

    def list_batches(self, job: str = "", *, states: Iterable[BatchState] = (),
                     tenant: str = "") -> Iterator[Batch]:
        """Batches, newest first, asked for page by page: of `job`, in one of `states`, of `tenant`,
        where these are given."""
        request = batch_service_pb2.ListBatchesRequest(
            job=job, tenant=tenant,
            states=[batch_pb2.BatchState.Name(int(state.value)) for state in states])
        while True:
            response = ask(self._batches.ListBatches, request, self._timeout)
            yield from map(to_batch, response.batches)
            request.page_token = response.next_page_token
            if not request.page_token:
                return

    def cancel(self, batch: AnyBatch, reason: str = "") -> Batch:
        """Gives a batch up; what was counted stays in the report. FailedPrecondition: it is complete."""
        request = batch_service_pb2.CancelBatchRequest(batch=_number(batch), reason=reason)
        return to_batch(ask(self._batches.CancelBatch, request, self._timeout).status)

    def receipt(self, batch: AnyBatch) -> Receipt:
        """Where every transaction went; that of a cancelled batch has "state cancelled" and says what
        is counted so far. FailedPrecondition: the batch is neither complete nor cancelled. DataLoss:
        the text does not have its checksum."""
        request = batch_service_pb2.GetReceiptRequest(batch=_number(batch))
        response = ask(self._batches.GetReceipt, request, self._timeout)
        return to_receipt(response.text, response.checksum)

    # What was counted.

    def report(self, batch: AnyBatch, group: str) -> list[ReportRow]:
        """All rows of a group, as of one moment, in the byte order of their keys.

        NotFound: no such batch, or no such group. Unavailable: no controller is there.
        """
        address = self._controller or self._find_controller()
        request = report_service_pb2.GetReportRequest(batch=_number(batch), group=group)
        group_of: Group | None = None
        rows: list[ReportRow] = []
        with contextlib.closing(open_channel(address, self._tls)) as channel:
            get_report = report_stub(channel).GetReport
            with contextlib.closing(
                    hear(lambda: get_report(request, timeout=self._patience))) as parts:
                for part in parts:
                    if part.HasField("schema"):
                        group_of = to_group(part.schema)
                    elif group_of is not None:
                        rows += [to_row(group_of, row) for row in part.rows.rows]
        return rows

    def _find_controller(self) -> str:
        """An initiator that was just started hears of it within some seconds."""
        patience = Patience(self._timeout)
        request = mesh_service_pb2.ListInstancesRequest(role=heartbeat_pb2.ROLE_CONTROLLER)
        while True:
            for instance in ask(self._mesh.ListInstances, request, self._timeout).instances:
                if instance.info.address and not instance.leaving:
                    return instance.info.address
            patience.wait_after(
                Unavailable(grpc.StatusCode.UNAVAILABLE, "the initiator has heard of no controller"),
                "the report")


def _number(batch: AnyBatch) -> int:
    return batch.number if isinstance(batch, Batch) else batch
