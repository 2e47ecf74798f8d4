# SPDX-License-Identifier: Apache-2.0
"""What was counted, and the proof of it."""

from __future__ import annotations

import dataclasses
import decimal
import hashlib
from collections.abc import Mapping, Sequence
from typing import Union

import grpc

from muster.errors import DataLoss
from muster.v1 import item_result_pb2, job_schema_pb2

Number = Union[int, decimal.Decimal]


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of a group: keys that tell it apart, and its measures, exact."""

    keys: Mapping[str, str]
    measures: Mapping[str, Number]


@dataclasses.dataclass(frozen=True)
class ReportRow:
    """A row of a report, whose measures are Decimals, those of whole numbers, too."""

    keys: Mapping[str, str]
    measures: Mapping[str, decimal.Decimal]


@dataclasses.dataclass(frozen=True)
class Measure:
    """A number of a group's rows; `scale` is how many decimals are kept, 0 for whole numbers."""

    name: str
    whole: bool
    scale: int


@dataclasses.dataclass(frozen=True)
class Group:
    """A table of a job's report."""

    name: str
    keys: Sequence[str]
    measures: Sequence[Measure]


@dataclasses.dataclass(frozen=True)
class Receipt:
    """The proof of where every transaction went: lines "name value", and their SHA-256."""

    text: str
    checksum: str


def to_group(schema: job_schema_pb2.GroupSchema) -> Group:
    measures = tuple(
        Measure(measure.name, int(measure.type) == job_schema_pb2.MEASURE_TYPE_INT, measure.scale)
        for measure in schema.measures)
    return Group(schema.name, tuple(schema.keys), measures)


def to_row(group: Group, row: item_result_pb2.PartialRow) -> ReportRow:
    measures = (decimal.Decimal(text) for text in row.measures)
    return ReportRow(dict(zip(group.keys, row.keys)),
                     dict(zip((measure.name for measure in group.measures), measures)))


def to_receipt(text: str, checksum: str) -> Receipt:
    """DataLoss: the text does not have that checksum."""
    if hashlib.sha256(text.encode()).hexdigest() != checksum:
        raise DataLoss(grpc.StatusCode.DATA_LOSS, "the receipt does not have its checksum")
    return Receipt(text, checksum)
