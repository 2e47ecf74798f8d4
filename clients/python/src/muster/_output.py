# SPDX-License-Identifier: Apache-2.0
"""Output records: what handlers return for single transactions."""

from __future__ import annotations

import dataclasses
import decimal
from collections.abc import Mapping, Sequence
from typing import Union

from muster._amounts import Unfit, fitted
from muster._report import Measure
from muster.v1 import item_result_pb2, job_schema_pb2

# As muster's processors count a record's bytes, and how many they take.
_MAX_RECORD_BYTES = 64 << 10
_FIELD_OVERHEAD_BYTES = 4
_MAX_WORDS = 1000  # characters, of which 512 bytes are kept

# None where a number is absent; an absent text is "".
Value = Union[str, int, decimal.Decimal, None]


@dataclasses.dataclass(frozen=True)
class OutputColumn:
    """A column of a job's output records; `kind` is "text", "int" or "decimal", and `scale` how many
    decimals are kept."""

    name: str
    kind: str
    scale: int


@dataclasses.dataclass(frozen=True)
class OutputRecord:
    """A record that the transaction at `line` of the input gave; int columns are ints, decimal ones
    Decimals."""

    line: int
    values: Mapping[str, Value]


_KINDS = {job_schema_pb2.OUTPUT_TYPE_TEXT: "text", job_schema_pb2.OUTPUT_TYPE_INT: "int",
          job_schema_pb2.OUTPUT_TYPE_DECIMAL: "decimal"}


def to_columns(schema: Sequence[job_schema_pb2.OutputColumn]) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(column.name, _KINDS.get(column.type, "text"), column.scale)
                 for column in schema)


def _value(column: OutputColumn, text: str) -> Value:
    if column.kind == "text":
        return text
    if text == "":
        return None
    return int(text) if column.kind == "int" else decimal.Decimal(text)


def to_record(columns: Sequence[OutputColumn], record: item_result_pb2.OutputRecord) -> OutputRecord:
    return OutputRecord(record.line, {column.name: _value(column, text)
                                      for column, text in zip(columns, record.fields)})


def to_fields(columns: Sequence[OutputColumn], values: Mapping[str, Value]) -> list[str]:
    """KeyError, TypeError: the program is wrong. Unfit: a value that its column does not take."""
    if set(values) != {column.name for column in columns}:
        raise KeyError(f"a record has the columns {', '.join(column.name for column in columns)}")
    fields = [_field(column, values[column.name]) for column in columns]
    size = sum(len(field.encode()) + _FIELD_OVERHEAD_BYTES for field in fields) + _FIELD_OVERHEAD_BYTES
    if size > _MAX_RECORD_BYTES:
        raise Unfit(f"a record of {size} bytes; at most {_MAX_RECORD_BYTES}")
    return fields


def _field(column: OutputColumn, value: Value) -> str:
    if column.kind == "text":
        if not isinstance(value, str):
            raise TypeError(f"{column.name}: a {type(value).__name__} is no text")
        return fitted_text(column.name, value)
    if value is None:
        return ""
    if isinstance(value, str):
        raise TypeError(f"{column.name}: a str is not exact")
    return f"{fitted(Measure(column.name, column.kind == 'int', column.scale), value):f}"


def to_words(reason: object) -> str:
    """Words that a message can have, the first of them: one that is too large ends a call. It refuses
    half a character, too, such as one of a file name that is no text."""
    try:
        text = f"{type(reason).__name__}: {reason}" if isinstance(reason, BaseException) else str(reason)
    except Exception:  # pylint: disable=broad-except
        text = type(reason).__name__  # it cannot say what it is
    return text[:_MAX_WORDS].encode(errors="replace").decode()


def fitted_text(name: str, value: str) -> str:
    """Unfit: no message, or no report, can have it."""
    try:
        value.encode()
    except UnicodeEncodeError:  # half a character
        raise Unfit(f"{name}: not UTF-8 text") from None
    if "\0" in value:
        raise Unfit(f"{name}: a NUL is not allowed")
    return value
