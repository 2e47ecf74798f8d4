# SPDX-License-Identifier: Apache-2.0
"""Channels that are set up as muster's servers expect it, and what their stubs look like to mypy."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import ssl
import threading
import weakref
from typing import Any, Callable, Generator, Iterator, Protocol, TypeVar, Union, cast

import grpc

from muster.errors import from_rpc
from muster.v1 import (batch_service_pb2, batch_service_pb2_grpc, call_service_pb2,
                       call_service_pb2_grpc, job_service_pb2, job_service_pb2_grpc,
                       mesh_service_pb2, mesh_service_pb2_grpc, report_service_pb2,
                       report_service_pb2_grpc, schedule_service_pb2, schedule_service_pb2_grpc,
                       stream_service_pb2, stream_service_pb2_grpc)

Path = Union[str, "os.PathLike[str]"]
_Q = TypeVar("_Q", contravariant=True)
_R = TypeVar("_R", covariant=True)
_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")

# As those of muster's own command: see muster/rpc/limits.h for the reasons.
_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.max_send_message_length", 4 << 20),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # gRPC loses messages of a stream when it tries it again, so those that are sent try again by themselves.
    # A record of a call that is tried again may be counted twice.
    ("grpc.service_config", json.dumps({"methodConfig": [
        {"name": [{"service": "muster.v1.BatchService", "method": "Submit"},
                  {"service": "muster.v1.StreamService", "method": "ProcessEvents"},
                  {"service": "muster.v1.CallService", "method": "Call"}]},
        {"name": [{}], "retryPolicy": {
            "maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s", "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE"]}}]})),
]


@dataclasses.dataclass(frozen=True)
class Tls:
    """Paths of PEM files; see Client."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def wanted(self) -> bool:
        return any(path is not None for path in (self.ca, self.certificate, self.key))


def check_address(address: str) -> None:
    """gRPC takes 443 for a port that is missing, and looks for hosts of any name."""
    form = re.fullmatch(r"(\[[^][/@\s]*:[^][/@\s]*\]|[^][:/@\s]+):([0-9]{1,5})", address)
    if form is None or not 1 <= int(form[2]) <= 65535:
        raise ValueError(f"the address {address!r} must be HOST:PORT, such as localhost:7700 or [::1]:7700")


def open_channel(address: str, tls: Tls) -> grpc.Channel:
    """Connects with its first call, and again whenever it must. ValueError: the address is not HOST:PORT.
    OSError: a file cannot be used."""
    check_address(address)
    if not tls.wanted():
        return grpc.insecure_channel(address, _OPTIONS)
    if (tls.certificate is None) != (tls.key is None):
        raise ValueError("certificate and key go together")
    return cast(grpc.Channel, _RenewedChannel(address, tls))


def _read(path: Path | None) -> bytes | None:
    return None if path is None else pathlib.Path(path).read_bytes()


def _version(path: Path | None) -> tuple[int, ...] | None:
    """What changes when the file is written anew, or a link to it leads elsewhere; None: it is not there."""
    try:
        file = os.stat(path) if path is not None else None
    except OSError:
        return None
    return file and (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns)


class _Opened:
    """A channel that is closed when there is a newer one, and the last of its calls has ended."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    def __del__(self) -> None:
        self.channel.close()


class _OpenedStream:
    def __init__(self, opened: _Opened, stream: ServerStream[Any]) -> None:
        self._opened = opened
        self._stream = stream

    def __iter__(self) -> Iterator[Any]:
        yield from self._stream

    def cancel(self) -> object:
        return self._stream.cancel()


class _RenewedChannel:
    """gRPC reads no file again, so this opens another channel when the files have changed: certificates
    are renewed while a program runs. While they cannot be read or do not fit each other, calls begin on
    the last one. Thread-safe."""

    def __init__(self, address: str, tls: Tls) -> None:
        self._address = address
        self._tls = tls
        self._mu = threading.Lock()
        self._closed = False
        self._versions = self._look()
        self._last = self._open()
        self._all = weakref.WeakSet([self._last])

    def _look(self) -> list[tuple[int, ...] | None]:
        return [_version(path) for path in (self._tls.ca, self._tls.certificate, self._tls.key)]

    def _open(self) -> _Opened:
        # What gRPC says of files that it cannot use, each of its calls would be the first to hear.
        files = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self._tls.ca is not None:
            files.load_verify_locations(self._tls.ca)
        if self._tls.certificate is not None:
            files.load_cert_chain(self._tls.certificate, self._tls.key, password="")
        credentials = grpc.ssl_channel_credentials(
            _read(self._tls.ca), _read(self._tls.key), _read(self._tls.certificate))
        return _Opened(grpc.secure_channel(self._address, credentials, _OPTIONS))

    def _renewed(self) -> _Opened:
        with self._mu:
            versions = self._look()  # older than what is read then, so that no change is missed
            if versions != self._versions and not self._closed:
                try:
                    self._last = self._open()
                except OSError:
                    return self._last
                self._versions = versions
                self._all.add(self._last)
            return self._last

    def unary_unary(self, *method: Any, **forms: Any) -> Callable[..., Any]:
        def call(request: Any, timeout: float | None = None) -> Any:
            opened = self._renewed()
            return opened.channel.unary_unary(*method, **forms)(request, timeout=timeout)
        return call

    def unary_stream(self, *method: Any, **forms: Any) -> Callable[..., Any]:
        return self._streaming(lambda channel: channel.unary_stream(*method, **forms))

    def stream_stream(self, *method: Any, **forms: Any) -> Callable[..., Any]:
        return self._streaming(lambda channel: channel.stream_stream(*method, **forms))

    def _streaming(self, method_of: Callable[[grpc.Channel], Callable[..., Any]]) -> Callable[..., Any]:
        def call(request: Any, timeout: float | None = None) -> Any:
            opened = self._renewed()
            return _OpenedStream(opened, method_of(opened.channel)(request, timeout=timeout))
        return call

    def close(self) -> None:
        with self._mu:
            self._closed = True
            for opened in self._all:
                opened.channel.close()


class ServerStream(Protocol[_R]):
    """The answers of a call, as they come."""

    def __iter__(self) -> Iterator[_R]: ...
    def cancel(self) -> object: ...


class Unary(Protocol[_Q, _R]):
    def __call__(self, request: _Q, timeout: float | None = None) -> _R: ...


class Streaming(Protocol[_Q, _R]):
    """`request` is an iterator of requests where the client streams, too."""

    def __call__(self, request: _Q, timeout: float | None = None) -> ServerStream[_R]: ...


class BatchStub(Protocol):
    Submit: Streaming[Iterator[batch_service_pb2.SubmitRequest], batch_service_pb2.SubmitResponse]
    GetBatch: Unary[batch_service_pb2.GetBatchRequest, batch_service_pb2.GetBatchResponse]
    ListBatches: Unary[batch_service_pb2.ListBatchesRequest, batch_service_pb2.ListBatchesResponse]
    WatchBatch: Streaming[batch_service_pb2.WatchBatchRequest, batch_service_pb2.WatchBatchResponse]
    CancelBatch: Unary[batch_service_pb2.CancelBatchRequest, batch_service_pb2.CancelBatchResponse]
    GetReceipt: Unary[batch_service_pb2.GetReceiptRequest, batch_service_pb2.GetReceiptResponse]
    ReadRecords: Unary[batch_service_pb2.ReadRecordsRequest, batch_service_pb2.ReadRecordsResponse]
    RetryRejections: Unary[batch_service_pb2.RetryRejectionsRequest,
                           batch_service_pb2.RetryRejectionsResponse]


class CallStub(Protocol):
    Call: Unary[call_service_pb2.CallRequest, call_service_pb2.CallResponse]


class JobStub(Protocol):
    ApplyJob: Unary[job_service_pb2.ApplyJobRequest, job_service_pb2.ApplyJobResponse]
    CheckJob: Unary[job_service_pb2.CheckJobRequest, job_service_pb2.CheckJobResponse]


class MeshStub(Protocol):
    ListInstances: Unary[mesh_service_pb2.ListInstancesRequest,
                         mesh_service_pb2.ListInstancesResponse]


class ReportStub(Protocol):
    GetReport: Streaming[report_service_pb2.GetReportRequest, report_service_pb2.GetReportResponse]
    ListRejections: Unary[report_service_pb2.ListRejectionsRequest,
                          report_service_pb2.ListRejectionsResponse]
    ListDeadLetters: Unary[report_service_pb2.ListDeadLettersRequest,
                           report_service_pb2.ListDeadLettersResponse]
    GetOutput: Unary[report_service_pb2.GetOutputRequest, report_service_pb2.GetOutputResponse]


class ScheduleStub(Protocol):
    CreateSchedule: Unary[schedule_service_pb2.CreateScheduleRequest,
                          schedule_service_pb2.CreateScheduleResponse]
    UpdateSchedule: Unary[schedule_service_pb2.UpdateScheduleRequest,
                          schedule_service_pb2.UpdateScheduleResponse]
    GetSchedule: Unary[schedule_service_pb2.GetScheduleRequest,
                       schedule_service_pb2.GetScheduleResponse]
    ListSchedules: Unary[schedule_service_pb2.ListSchedulesRequest,
                         schedule_service_pb2.ListSchedulesResponse]
    PauseSchedule: Unary[schedule_service_pb2.PauseScheduleRequest,
                         schedule_service_pb2.PauseScheduleResponse]
    ResumeSchedule: Unary[schedule_service_pb2.ResumeScheduleRequest,
                          schedule_service_pb2.ResumeScheduleResponse]
    RunSchedule: Unary[schedule_service_pb2.RunScheduleRequest,
                       schedule_service_pb2.RunScheduleResponse]
    DeleteSchedule: Unary[schedule_service_pb2.DeleteScheduleRequest,
                          schedule_service_pb2.DeleteScheduleResponse]


class StreamStub(Protocol):
    AppendEvents: Unary[stream_service_pb2.AppendEventsRequest,
                        stream_service_pb2.AppendEventsResponse]
    ProcessEvents: Streaming[Iterator[stream_service_pb2.ProcessEventsRequest],
                             stream_service_pb2.ProcessEventsResponse]


# What the plugin writes has no types.
def batch_stub(channel: grpc.Channel) -> BatchStub:
    return cast(BatchStub, cast(Any, batch_service_pb2_grpc).BatchServiceStub(channel))


def call_stub(channel: grpc.Channel) -> CallStub:
    return cast(CallStub, cast(Any, call_service_pb2_grpc).CallServiceStub(channel))


def job_stub(channel: grpc.Channel) -> JobStub:
    return cast(JobStub, cast(Any, job_service_pb2_grpc).JobServiceStub(channel))


def mesh_stub(channel: grpc.Channel) -> MeshStub:
    return cast(MeshStub, cast(Any, mesh_service_pb2_grpc).MeshServiceStub(channel))


def report_stub(channel: grpc.Channel) -> ReportStub:
    return cast(ReportStub, cast(Any, report_service_pb2_grpc).ReportServiceStub(channel))


def schedule_stub(channel: grpc.Channel) -> ScheduleStub:
    return cast(ScheduleStub, cast(Any, schedule_service_pb2_grpc).ScheduleServiceStub(channel))


def stream_stub(channel: grpc.Channel) -> StreamStub:
    return cast(StreamStub, cast(Any, stream_service_pb2_grpc).StreamServiceStub(channel))


def ask(method: Unary[_Request, _Answer], request: _Request, timeout: float) -> _Answer:
    """One unary call, whose failure is a MusterError."""
    try:
        return method(request, timeout=timeout)
    except grpc.RpcError as error:
        raise from_rpc(error) from None


def hear(call: Callable[[], ServerStream[_Answer]]) -> Generator[_Answer, None, None]:
    """What a stream answers; its failure is a MusterError. To be closed, which cancels it."""
    stream = call()
    try:
        yield from stream
    except grpc.RpcError as error:
        raise from_rpc(error) from None
    finally:
        stream.cancel()
