# SPDX-License-Identifier: Apache-2.0
"""Calls: single records, and what became of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Union

from muster._json import to_json
from muster._output import Value, to_columns, to_record
from muster.errors import DeadLettered, Rejected
from muster.v1 import call_service_pb2

# One record in the job's input format, or its columns by name.
Record = Union[str, bytes, Mapping[str, Any]]


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a job made of a record. It is counted at `line` of `batch`."""

    batch: int
    line: int
    outputs: Sequence[Mapping[str, Value]]  # the records that the handler returned, by column


def to_request(job: str, record: Record, request_id: str | bytes | None) -> call_service_pb2.CallRequest:
    """TypeError: a value that is not exact, or none of JSON's."""
    request = call_service_pb2.CallRequest(
        job=job, request_id=request_id.encode() if isinstance(request_id, str) else request_id or b"")
    if isinstance(record, Mapping):
        request.fields.update({name: _text(name, value) for name, value in record.items()
                               if value is not None})
    else:
        request.record = record.encode() if isinstance(record, str) else record
    return request


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return to_json(value, floats=False)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def to_answer(response: call_service_pb2.CallResponse) -> Answer:
    """Rejected, DeadLettered: what their names say."""
    if response.HasField("rejected"):
        raise Rejected(response.batch, response.line, response.rejected.reason)
    if response.HasField("dead_lettered"):
        raise DeadLettered(response.batch, response.line, response.dead_lettered.cause)
    columns = to_columns(response.accepted.columns)
    return Answer(response.batch, response.line,
                  tuple(to_record(columns, record).values for record in response.accepted.records))
