# SPDX-License-Identifier: Apache-2.0
"""Client: submits batches to a mesh, follows them, and reads what was counted."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import pathlib
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Callable, Union

import grpc

from muster._batch import Batch, BatchState, from_time, to_batch
from muster._call import Answer, Record, to_answer, to_request
from muster._channel import (Path, Tls, ask, batch_stub, call_stub, check_address, hear, job_stub,
                             mesh_stub, open_channel, report_stub, schedule_stub)
from muster._content import Content, Source, opened
from muster._failures import (FailedTransaction, FailureReader, RetriedBatch,
                              retry_rejections)
from muster._output import OutputColumn, OutputRecord, to_columns, to_record
from muster._patience import Patience
from muster._report import Group, Receipt, ReportRow, to_group, to_receipt, to_row
from muster._schedule import BatchOptions, CatchUp, Schedule, read_whole, to_schedule, to_spec
from muster._upload import SubmitProgress, Unreadable, Upload
from muster.errors import InvalidArgument, InvalidJob, JobProblem, MusterError, Unavailable
from muster.v1 import (batch_pb2, batch_service_pb2, heartbeat_pb2, job_service_pb2,
                       mesh_service_pb2, report_service_pb2, schedule_service_pb2)

AnyBatch = Union[Batch, RetriedBatch, int]


@dataclasses.dataclass(frozen=True)
class Job:
    """A job as the mesh keeps it."""

    name: str
    revision: str
    revised: bool  # results are decided otherwise than before; True for a new job
    columns: Sequence[str]
    groups: Sequence[Group]
    outputs: Sequence[OutputColumn] = ()  # of the records that its handler may return


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
        without it, the initiator is asked. ValueError: one has another form.

        Plaintext, unless one of these PEM files is named: `ca` has the roots that the servers'
        certificates must come from, without it gRPC's own are taken; `certificate` and `key` say
        who asks, where servers demand that. Calls begin with what the files hold then.
        """
        self._tls = Tls(ca, certificate, key)
        self._timeout = timeout
        self._patience = patience
        if controller:
            check_address(controller)
        self._controller = controller
        self._channel = open_channel(server, self._tls)
        self._batches = batch_stub(self._channel)
        self._calls = call_stub(self._channel)
        self._jobs = job_stub(self._channel)
        self._mesh = mesh_stub(self._channel)
        self._schedules = schedule_stub(self._channel)

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
                   tuple(map(to_group, job.schema.groups)), to_columns(job.schema.outputs))

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
               tracestate: str = "", sla: datetime.timedelta | None = None,
               labels: Mapping[str, str] | None = None) -> Batch:
        """Uploads a batch, and returns when it is durable as a whole.

        `content` is a path, the bytes themselves, a file that is open for reading bytes, or
        anything that yields bytes, in pieces of any size. It is read once where `request_id` is
        given, and of what was read at most some 10 MiB are kept.

        The same `request_id` never makes a second batch: submit again after a crash, and the upload
        goes on where the initiator's disk ends. Without one, content that can be read twice names
        itself, as with `muster batch submit`; what cannot be is a new batch each time.

        `traceparent` is the W3C trace that the batch belongs to, and `tracestate` what comes with it.
        Without one, a tracing library's interceptor may name it, or the batch begins its own.

        `sla` is what this batch is promised instead of what its job promises. By its `labels`, at
        most 16 names and values, `list_batches` finds it later.

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
            header.labels.update(labels or {})
            if handler_version is not None:
                header.handler_version = handler_version
            if sla is not None:
                header.sla.FromTimedelta(sla)
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

    def list_batches(self, job: str = "", *, states: Iterable[BatchState] = (), tenant: str = "",
                     since: datetime.datetime | None = None, late: bool = False,
                     labels: Mapping[str, str] | None = None, calls: bool = False) -> Iterator[Batch]:
        """Batches, newest first, asked for page by page: of `job`, in one of `states`, of `tenant`,
        begun at `since` or later, `late`, with all of these `labels`, where these are given. Batches
        that calls were made into are among them only with `calls`, or where `labels` names theirs.

        Batches that begin meanwhile are not among them.
        """
        request = batch_service_pb2.ListBatchesRequest(
            job=job, tenant=tenant, late=late, labels=labels or {}, calls=calls,
            states=[batch_pb2.BatchState.Name(int(state.value)) for state in states])
        if since is not None:
            request.since.CopyFrom(from_time(since))
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

    # Single records.

    def call(self, job: str, record: Record, *, timeout: float | None = None, retry: bool = False,
             request_id: str | bytes | None = None) -> Answer:
        """Submits one record, waits until it is counted, and returns what the handler returned for it.

        `record` is a line of the job's input format, without a header, or a mapping of the job's
        columns to texts, whole numbers, Decimals, bools, or what JSON can say; None is absent.

        Rejected: the handler has refused it. DeadLettered: it was given up. InvalidArgument: it is no
        record of the job. DeadlineExceeded: not within `timeout` seconds, without it those of the
        client; the message says what it waits for. Other errors are those of CallService.Call.

        Records of calls at a time share a batch. After any other error but InvalidArgument, NotFound
        and ResourceExhausted the record may be counted all the same, so the call is tried again only
        with `retry`, or a `request_id`: it then has a batch of its own, which the same id finds again,
        and counts once however often it is tried.
        """
        left = self._timeout if timeout is None else timeout
        if not request_id and retry:  # an empty one is none
            request_id = f"call:{uuid.uuid4()}"
        request = to_request(job, record, request_id)
        if not request_id:
            return to_answer(ask(self._calls.Call, request, left))
        end = time.monotonic() + left
        patience = Patience(left, end)
        while True:
            try:
                return to_answer(ask(self._calls.Call, request, max(0.0, end - time.monotonic())))
            except MusterError as trouble:
                patience.wait_after(trouble, "the call")

    # Schedules.

    def create_schedule(self, name: str, job: str, content: Source, *, cron: str = "",
                        time_zone: str = "", at: datetime.datetime | None = None,
                        catch_up: CatchUp = CatchUp.ONCE, handler_version: str | None = None,
                        tenant: str = "", sla: datetime.timedelta | None = None,
                        labels: Mapping[str, str] | None = None) -> Schedule:
        """Has batches of `content`, at most 3 MiB, submitted by the five fields of `cron` as the clock of
        `time_zone` shows them ("Europe/Berlin"; UTC without one), or once, `at` a time, which is local
        unless it has a tzinfo.

        `content` is what `submit` takes; the other arguments are those of each batch. The same call
        again changes nothing. AlreadyExists, as a MusterError: another schedule has the name.
        InvalidArgument: no schedule can be so; `violations` names the field.
        """
        spec = to_spec(name, job, cron, time_zone, at, catch_up,
                       BatchOptions(handler_version, tenant, sla, labels))
        with opened(content) as source:
            whole = read_whole(source.pieces)
        request = schedule_service_pb2.CreateScheduleRequest(spec=spec, content=whole)
        return to_schedule(ask(self._schedules.CreateSchedule, request, self._timeout).schedule)

    def update_schedule(self, name: str, job: str, *, cron: str = "", time_zone: str = "",
                        at: datetime.datetime | None = None, catch_up: CatchUp = CatchUp.ONCE,
                        handler_version: str | None = None, tenant: str = "",
                        sla: datetime.timedelta | None = None,
                        labels: Mapping[str, str] | None = None,
                        expected_revision: int | None = None) -> Schedule:
        """Changes all but the content of a schedule: what is not named is as in a new one, not as before.
        It goes on with its next occurrence, and what came before is not made up for. The same call again
        changes nothing.

        Aborted: it is not at `expected_revision`. FailedPrecondition: it was to occur once, and has ended.
        Unavailable: an occurrence is being submitted; try again. Otherwise it raises what
        `create_schedule` does.
        """
        spec = to_spec(name, job, cron, time_zone, at, catch_up,
                       BatchOptions(handler_version, tenant, sla, labels))
        request = schedule_service_pb2.UpdateScheduleRequest(spec=spec)
        if expected_revision is not None:
            request.expected_revision = expected_revision
        return to_schedule(ask(self._schedules.UpdateSchedule, request, self._timeout).schedule)

    def get_schedule(self, name: str) -> Schedule:
        """Where the schedule stands. NotFound: there is none."""
        request = schedule_service_pb2.GetScheduleRequest(name=name)
        return to_schedule(ask(self._schedules.GetSchedule, request, self._timeout).schedule)

    def list_schedules(self) -> Iterator[Schedule]:
        """All schedules in order of name, asked for page by page."""
        request = schedule_service_pb2.ListSchedulesRequest()
        while True:
            response = ask(self._schedules.ListSchedules, request, self._timeout)
            yield from map(to_schedule, response.schedules)
            request.page_token = response.next_page_token
            if not request.page_token:
                return

    def pause_schedule(self, name: str) -> Schedule:
        """Has it submit nothing until it is resumed."""
        request = schedule_service_pb2.PauseScheduleRequest(name=name)
        return to_schedule(ask(self._schedules.PauseSchedule, request, self._timeout).schedule)

    def resume_schedule(self, name: str) -> Schedule:
        """Has it go on with its next occurrence; what it left out is not made up for."""
        request = schedule_service_pb2.ResumeScheduleRequest(name=name)
        return to_schedule(ask(self._schedules.ResumeSchedule, request, self._timeout).schedule)

    def run_schedule(self, name: str, run_id: str | None = None) -> Batch:
        """Submits a batch of it now. The same `run_id` never makes a second one; without it, each call
        makes one."""
        request = schedule_service_pb2.RunScheduleRequest(
            name=name, run_id=run_id if run_id is not None else f"python-{uuid.uuid4()}")
        return self.get(ask(self._schedules.RunSchedule, request, self._timeout).batch)

    def delete_schedule(self, name: str) -> None:
        """Its batches stay."""
        ask(self._schedules.DeleteSchedule,
            schedule_service_pb2.DeleteScheduleRequest(name=name), self._timeout)

    # What was counted.

    def report(self, batch: AnyBatch, group: str) -> list[ReportRow]:
        """All rows of a group, as of one moment, in the byte order of their keys.

        NotFound: no such batch, or no such group. Unavailable: no controller is there.
        """
        address = self._controller or self._find_controller(Patience(self._timeout))
        request = report_service_pb2.GetReportRequest(batch=_number(batch), group=group)
        group_of: Group | None = None
        rows: list[ReportRow] = []
        # A long report takes longer than other calls; who is not patient still waits as for those.
        longest = max(self._timeout, self._patience)
        with contextlib.closing(open_channel(address, self._tls)) as channel:
            get_report = report_stub(channel).GetReport
            with contextlib.closing(
                    hear(lambda: get_report(request, timeout=longest))) as parts:
                for part in parts:
                    if part.HasField("schema"):
                        group_of = to_group(part.schema)
                    elif group_of is not None:
                        rows += [to_row(group_of, row) for row in part.rows.rows]
        return rows

    def rejections(self, batch: AnyBatch) -> Iterator[FailedTransaction]:
        """The transactions that a batch rejected, in the order of item and line, with their records,
        asked for page by page: at most 3 MiB of rows, and as many of records, are kept at a time.

        NotFound: no such batch. Unavailable: no controller is there.
        """
        with self._failures(batch) as reader:
            yield from reader.rejections()

    def dead_letters(self, batch: AnyBatch) -> Iterator[FailedTransaction]:
        """The transactions of items that were given up, likewise; the reason is what gave up the
        item."""
        with self._failures(batch) as reader:
            yield from reader.dead_letters()

    def retry_rejections(self, batch: AnyBatch, lines: Sequence[int] | None = None,
                         timeout: float = 600, *,
                         items: Sequence[int] | None = None) -> list[RetriedBatch]:
        """Submits what a complete batch rejected and gave up once more, as new batches of its job as
        it is now: the records that begin at `lines`, all of `items` that were given up as wholes, or
        all that was not retried yet. Each is retried once: a second call with the same lines or items
        returns the batch that has them already. `timeout` holds for each call to the server, which
        takes 1,000 lines or items, or 50,000 transactions of all.

        NotFound: no such batch, it rejected nothing at a line, or has not given up an item.
        FailedPrecondition: the batch is not complete, its content is deleted, or nothing is left to
        retry. Unavailable, ResourceExhausted: call again, and it goes on. The error's `retried` are
        the batches that were there before it.
        """
        return retry_rejections(_number(batch), lines, items, self._batches, timeout)

    @contextlib.contextmanager
    def _failures(self, batch: AnyBatch) -> Iterator[FailureReader]:
        address = self._controller or self._find_controller(Patience(self._timeout))
        with contextlib.closing(open_channel(address, self._tls)) as channel:
            yield FailureReader(_number(batch), self._batches, report_stub(channel), self._timeout)

    def output(self, batch: AnyBatch) -> Iterator[OutputRecord]:
        """The records that the handler returned for a complete batch, in the order of the input, asked
        for page by page.

        NotFound: no such batch, or its job has no outputs. FailedPrecondition: the batch is not
        complete, or is cancelled. Aborted: a redrive has changed the batch; begin again. A page that
        is answered Unavailable, or for which no controller is listed, as while one restarts, is asked
        for again for `patience` seconds.
        """
        request = report_service_pb2.GetOutputRequest(batch=_number(batch))
        patience = Patience(self._patience)
        while True:
            try:
                address = self._controller or self._find_controller(patience)
                with contextlib.closing(open_channel(address, self._tls)) as channel:
                    get_output = report_stub(channel).GetOutput
                    while True:
                        page = ask(get_output, request, self._timeout)
                        patience.refresh()
                        columns = to_columns(page.columns)
                        yield from (to_record(columns, record) for record in page.records)
                        request.page_token = page.next_page_token
                        if not request.page_token:
                            return
            except MusterError as trouble:
                patience.wait_after(trouble, "the output")

    def _find_controller(self, patience: Patience) -> str:
        """An initiator that was just started hears of it within some seconds."""
        request = mesh_service_pb2.ListInstancesRequest(role=heartbeat_pb2.ROLE_CONTROLLER)
        while True:
            for instance in ask(self._mesh.ListInstances, request, self._timeout).instances:
                if instance.info.address and not instance.leaving:
                    return instance.info.address
            patience.wait_after(
                Unavailable(grpc.StatusCode.UNAVAILABLE, "the initiator has heard of no controller: "
                            "start one, or name the one that has the report"), "the report")


def _number(batch: AnyBatch) -> int:
    if isinstance(batch, Batch):
        return batch.number
    return batch.batch if isinstance(batch, RetriedBatch) else batch
