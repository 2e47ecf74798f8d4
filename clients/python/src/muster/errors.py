# SPDX-License-Identifier: Apache-2.0
"""What a call can fail with: one class per gRPC code that muster answers, with its details."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import DecodeError

from muster.rpc_details import error_details_pb2, status_pb2

if TYPE_CHECKING:
    from muster._failures import RetriedBatch

_DETAILS_TRAILER = "grpc-status-details-bin"
_DOMAIN = "muster"


@dataclasses.dataclass(frozen=True)
class FieldViolation:
    """What is wrong with a field of a request."""

    field: str  # its path, such as "header.request_id"
    description: str


@dataclasses.dataclass(frozen=True)
class JobProblem:
    """A mistake in a job's definition; line and column begin at 1."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"


@dataclasses.dataclass(frozen=True)
class ErrorDetails:
    """What the server said for programs."""

    violations: Sequence[FieldViolation] = ()
    retry_after: datetime.timedelta | None = None
    reason: str | None = None
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)


class MusterError(Exception):
    """A call has failed. Its subclasses tell the codes apart that muster gives a meaning."""

    def __init__(self, code: grpc.StatusCode, message: str,
                 details: ErrorDetails | None = None) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.message = message
        # Of Client.retry_rejections: what had been retried when it failed.
        self.retried: Sequence[RetriedBatch] = ()
        self._details = details or ErrorDetails()

    @property
    def violations(self) -> Sequence[FieldViolation]:
        """Which fields of the request are refused, and why (google.rpc.BadRequest)."""
        return self._details.violations

    @property
    def retry_after(self) -> datetime.timedelta | None:
        """Wait at least so long before the next try (google.rpc.RetryInfo)."""
        return self._details.retry_after

    @property
    def reason(self) -> str | None:
        """Such as "WRONG_OFFSET" (google.rpc.ErrorInfo); docs/api.md has them."""
        return self._details.reason

    @property
    def facts(self) -> Mapping[str, str]:
        """What goes with the reason, by name."""
        return self._details.facts


class InvalidArgument(MusterError):
    """Mend the request; `violations` names its fields."""


class InvalidJob(InvalidArgument):
    """The job's definition has mistakes."""

    def __init__(self, refused: InvalidArgument, problems: Sequence[JobProblem]) -> None:
        super().__init__(refused.code, refused.message, refused._details)
        self.problems = tuple(problems)


class NotFound(MusterError):
    """No such batch, job or group."""


class FailedPrecondition(MusterError):
    """Not as things stand."""


class Aborted(MusterError):
    """Somebody else was faster."""


class OutOfRange(MusterError):
    """A piece of content that does not follow what is there."""


class PermissionDenied(MusterError):
    """The server's policy does not let this caller call this method."""


class ResourceExhausted(MusterError):
    """A limit of the server: try later, or send less."""


class Unavailable(MusterError):
    """Nobody answers, or cannot now: try again. What was asked may have been done."""


class DeadlineExceeded(MusterError, TimeoutError):
    """The time given is over; what was asked may have been done, or goes on."""


class Cancelled(MusterError):
    """The batch was cancelled, or the call was."""


class DataLoss(MusterError):
    """A stored record is damaged, or what arrived is not what was sent."""


class NotAccepted(Exception):
    """A called record is counted, and was not accepted. It is at `line` of `batch`."""

    def __init__(self, batch: int, line: int, reason: str) -> None:
        super().__init__(reason)
        self.batch = batch
        self.line = line
        self.reason = reason


class Rejected(NotAccepted):
    """The handler has refused the record."""


class DeadLettered(NotAccepted):
    """No worker could finish with the record, which was given up."""


_CLASSES: Mapping[grpc.StatusCode, type[MusterError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgument,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPrecondition,
    grpc.StatusCode.ABORTED: Aborted,
    grpc.StatusCode.OUT_OF_RANGE: OutOfRange,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDenied,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhausted,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.CANCELLED: Cancelled,
    grpc.StatusCode.DATA_LOSS: DataLoss,
}


def make_error(code: grpc.StatusCode, message: str,
               details: ErrorDetails | None = None) -> MusterError:
    return _CLASSES.get(code, MusterError)(code, message, details)


def from_rpc(error: grpc.RpcError) -> MusterError:
    """What `error`, of a call that has ended, means."""
    if not isinstance(error, grpc.Call):
        return make_error(grpc.StatusCode.UNKNOWN, str(error))
    packed = b""
    for name, value in error.trailing_metadata() or ():
        if name == _DETAILS_TRAILER and isinstance(value, bytes):
            packed = value
    return make_error(error.code(), error.details() or "", _unpack(packed))


def _unpack(packed: bytes) -> ErrorDetails:
    violations: tuple[FieldViolation, ...] = ()
    retry_after = None
    reason = None
    facts: dict[str, str] = {}
    try:
        for detail in status_pb2.Status.FromString(packed).details:
            kind = detail.type_url.rpartition("/")[2]
            if kind == "google.rpc.BadRequest":
                bad = error_details_pb2.BadRequest.FromString(detail.value)
                violations = tuple(FieldViolation(found.field, found.description)
                                   for found in bad.field_violations)
            elif kind == "google.rpc.RetryInfo":
                retry = error_details_pb2.RetryInfo.FromString(detail.value)
                retry_after = retry.retry_delay.ToTimedelta()
            elif kind == "google.rpc.ErrorInfo":
                info = error_details_pb2.ErrorInfo.FromString(detail.value)
                if info.domain == _DOMAIN:
                    reason, facts = info.reason, dict(info.metadata)
    except DecodeError:
        pass  # a proxy's, perhaps: code and message are there all the same
    return ErrorDetails(violations, retry_after, reason, facts)
