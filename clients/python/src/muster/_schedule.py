# SPDX-License-Identifier: Apache-2.0
"""What a schedule looks like to a client."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections.abc import Iterable, Mapping

from muster._batch import from_time, to_time
from muster.v1 import schedule_pb2, schedule_service_pb2

# What a schedule's batches may consist of, as ScheduleService.CreateSchedule says.
_MAX_CONTENT_BYTES = 3 << 20


class CatchUp(enum.Enum):
    """What becomes of occurrences whose time passed while no initiator was there. A rule of a newer
    muster is UNKNOWN."""

    UNKNOWN = schedule_pb2.CATCH_UP_UNSPECIFIED
    NONE = schedule_pb2.CATCH_UP_NONE  # they are missed
    ONCE = schedule_pb2.CATCH_UP_ONCE  # the last of them is submitted
    ALL = schedule_pb2.CATCH_UP_ALL  # each is, in order


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A schedule as it stood when it was asked for."""

    name: str
    id: str  # new for each creation
    job: str
    cron: str  # empty: it occurs once, at `at`
    time_zone: str  # of `cron`; empty: UTC
    at: datetime.datetime | None
    catch_up: CatchUp
    labels: Mapping[str, str]
    content_bytes: int
    created: datetime.datetime
    paused: bool
    next: datetime.datetime | None  # None: there is none, or it is paused
    last: datetime.datetime | None  # the last occurrence that was submitted
    last_batch: int  # 0: none
    problem: str  # why it did not do what it should; empty: nothing is wrong
    submitted: int  # occurrences, since it was created
    missed: int
    failed: int
    ended: datetime.datetime | None  # of one with `at`: when that was decided
    revision: int = 0  # of all but its content: 1 when it is made, and one more with each update


@dataclasses.dataclass(frozen=True)
class BatchOptions:
    """What each batch of a schedule is submitted with."""

    handler_version: str | None
    tenant: str
    sla: datetime.timedelta | None
    labels: Mapping[str, str] | None


def to_catch_up(value: int) -> CatchUp:
    if value == schedule_pb2.CATCH_UP_UNSPECIFIED:
        return CatchUp.ONCE
    try:
        return CatchUp(value)
    except ValueError:
        return CatchUp.UNKNOWN


def to_schedule(found: schedule_service_pb2.Schedule) -> Schedule:
    spec = found.spec
    return Schedule(
        name=spec.name,
        id=found.id,
        job=spec.job,
        cron=spec.cron,
        time_zone=spec.time_zone,
        at=to_time(spec.at) if spec.HasField("at") else None,
        catch_up=to_catch_up(int(spec.catch_up)),
        labels=dict(spec.labels),
        content_bytes=found.content_bytes,
        created=to_time(found.created),
        paused=found.paused,
        next=to_time(found.next) if found.HasField("next") else None,
        last=to_time(found.last) if found.HasField("last") else None,
        last_batch=found.last_batch,
        problem=found.problem,
        submitted=found.submitted,
        missed=found.missed,
        failed=found.failed,
        ended=to_time(found.ended) if found.HasField("ended") else None,
        revision=found.revision)


def read_whole(pieces: Iterable[bytes]) -> bytes:
    """The content; of what is too long no more than what the server needs to refuse it."""
    whole = bytearray()
    for piece in pieces:
        whole += piece
        if len(whole) > _MAX_CONTENT_BYTES:
            break
    return bytes(whole[:_MAX_CONTENT_BYTES + 1])


def to_spec(name: str, job: str, cron: str, time_zone: str, at: datetime.datetime | None,
            catch_up: CatchUp, batches: BatchOptions) -> schedule_pb2.ScheduleSpec:
    if cron and at is not None:
        raise ValueError("a schedule occurs by cron or at a time, not both")
    if time_zone and at is not None:
        raise ValueError("time_zone is for cron: give the datetime that it occurs at its tzinfo instead")
    spec = schedule_pb2.ScheduleSpec(
        name=name, job=job, catch_up=schedule_pb2.CatchUp.Name(int(catch_up.value)),
        tenant=batches.tenant, labels=batches.labels or {})
    if batches.handler_version is not None:
        spec.handler_version = batches.handler_version
    if batches.sla is not None:
        spec.sla.FromTimedelta(batches.sla)
    if at is not None:
        spec.at.CopyFrom(from_time(at))
    else:
        spec.cron = cron
        spec.time_zone = time_zone
    return spec
