# SPDX-License-Identifier: Apache-2.0
"""What a batch looks like to a client."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import types
from collections.abc import Mapping, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from muster.v1 import batch_pb2, batch_service_pb2

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


class BatchState(enum.Enum):
    """Where a batch stands. A state of a newer muster is UNKNOWN."""

    UNKNOWN = batch_pb2.BATCH_STATE_UNSPECIFIED
    OPEN = batch_pb2.BATCH_STATE_OPEN
    SEALED = batch_pb2.BATCH_STATE_SEALED
    COMPLETE = batch_pb2.BATCH_STATE_COMPLETE
    CANCELLED = batch_pb2.BATCH_STATE_CANCELLED


@dataclasses.dataclass(frozen=True)
class Flow:
    """How far a batch has come, in transactions."""

    read: int
    queued: int
    processed: int
    committed: int
    split: float  # share of the content that was split, 0 to 1


@dataclasses.dataclass(frozen=True)
class Batch:
    """A batch as it stood at `revision`."""

    number: int
    revision: int
    job: str
    job_revision: str
    handler_version: str  # that the batch is bound to; empty: to none, and any works on it
    request_id: bytes
    state: BatchState
    complete: bool
    created: datetime.datetime
    completed: datetime.datetime | None
    sla: datetime.timedelta | None  # the promised latency
    deadline: datetime.datetime | None  # when it ends
    late_by: datetime.timedelta  # later than promised, or than promised by now; zero: it is not late
    at_risk: bool  # it is open, and at its pace so far it will be late
    flow: Flow
    transactions: int  # counted: aggregated + rejected + dead_lettered
    aggregated: int
    rejected: int
    dead_lettered: int
    items: int
    items_dead: int
    attempts: int
    seconds: float
    problem: str  # why it does not go on for now; empty: it does
    cancel_reason: str  # of a cancelled batch: why; may be empty
    traceparent: str  # W3C trace that all work on the batch belongs to; empty: it has none
    labels: Mapping[str, str]  # as they were submitted
    counts_problem: str  # in a list: why the counts are not known, and zero; empty: they are
    retry_of: int = 0  # the batch whose rejections it retries; 0: it is no retry, or that one is deleted
    retried_in: Sequence[int] = ()  # the batches that retry its rejections: the newest 100

    @property
    def over(self) -> bool:
        """Nothing changes any more, unless its poison is redriven."""
        return self.complete or self.state in (BatchState.COMPLETE, BatchState.CANCELLED)


def to_time(stamp: Timestamp) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)


def from_time(moment: datetime.datetime) -> Timestamp:
    """One without a time zone is local, as everywhere in Python."""
    micros = (moment.astimezone(datetime.timezone.utc) - _EPOCH) // datetime.timedelta(microseconds=1)
    return Timestamp(seconds=micros // 1_000_000, nanos=micros % 1_000_000 * 1000)


def to_state(value: int) -> BatchState:
    try:
        return BatchState(value)
    except ValueError:
        return BatchState.UNKNOWN


def to_batch(status: batch_service_pb2.BatchStatus) -> Batch:
    flow = status.progress
    return Batch(
        number=status.batch,
        revision=status.revision,
        job=status.job,
        job_revision=status.job_revision,
        handler_version=status.handler_version,
        request_id=status.request_id,
        state=to_state(int(status.state)),
        complete=status.complete,
        created=to_time(status.created),
        completed=to_time(status.completed) if status.HasField("completed") else None,
        sla=status.sla.ToTimedelta() if status.HasField("sla") else None,
        deadline=to_time(status.deadline) if status.HasField("deadline") else None,
        late_by=status.late_by.ToTimedelta(),
        at_risk=status.at_risk,
        flow=Flow(flow.read, flow.queued, flow.processed, flow.committed, flow.split),
        transactions=status.transactions,
        aggregated=status.aggregated,
        rejected=status.rejected,
        dead_lettered=status.dead_lettered,
        items=status.items,
        items_dead=status.items_dead,
        attempts=status.attempts,
        seconds=status.seconds,
        problem=status.problem,
        cancel_reason=status.cancel_reason,
        traceparent=status.traceparent,
        labels=types.MappingProxyType(dict(status.labels)),
        counts_problem=status.counts_problem,
        retry_of=status.retry_of,
        retried_in=tuple(status.retried_in),
    )
