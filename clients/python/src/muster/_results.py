# SPDX-License-Identifier: Apache-2.0
"""What a handler makes of an item: exact sums, and the lines that it rejects."""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence

from muster._amounts import Unfit, fitted
from muster._output import OutputColumn, Value, fitted_text, to_fields, to_words
from muster._report import Group, Row
from muster.v1 import handler_service_pb2, item_result_pb2

# As muster's processors take them.
MAX_KEY_BYTES = 1024


class Results:
    """Adds up an item. Not thread-safe; each item has its own."""

    def __init__(self, groups: Mapping[str, Group], lines: frozenset[int],
                 outputs: Sequence[OutputColumn] = ()) -> None:
        self._groups = groups
        self._lines = lines
        self._columns = outputs
        self._outputs: list[tuple[int, list[str]]] = []
        self._sums: dict[str, dict[tuple[str, ...], tuple[decimal.Decimal, ...]]] = {
            name: {} for name in groups}
        self._rejected: dict[int, str] = {}

    def add(self, rows: Mapping[str, Row]) -> None:
        """Adds a row to each of these groups, or to none.

        Unfit, to be told by `reject`: a measure with more decimals than its group keeps, a sum that
        does not fit, a key of more than 1,024 bytes, or with a NUL or half a character. KeyError, TypeError: the program is wrong.
        """
        sums = [(name, key, after) for name, row in rows.items()
                for key, after in [self._with(name, row)]]
        for name, key, after in sums:
            self._sums[name][key] = after

    def reject(self, line: int, reason: str) -> None:
        """The transaction that begins at `line` does not count."""
        if line not in self._lines:
            raise KeyError(f"no transaction begins at line {line}")
        self._rejected.setdefault(line, to_words(reason))

    def output(self, line: int, values: Mapping[str, Value]) -> None:
        """Returns a record for the transaction that begins at `line`: a value for each of the job's
        output columns, None where a number is absent. The records of lines that are rejected are left
        out.

        Unfit, to be told by `reject`: a number that its column does not take, text with a NUL or half
        a character, a record above 64 KiB. KeyError, TypeError: the program is wrong.
        """
        if line not in self._lines:
            raise KeyError(f"no transaction begins at line {line}")
        self._outputs.append((line, to_fields(self._columns, values)))

    def _with(self, name: str, row: Row) -> tuple[tuple[str, ...], tuple[decimal.Decimal, ...]]:
        group = self._groups[name]
        names = [measure.name for measure in group.measures]
        if set(row.keys) != set(group.keys) or set(row.measures) != set(names):
            raise KeyError(f"a row of {name} has the keys {', '.join(group.keys)} and the measures "
                           f"{', '.join(names)}")
        key = tuple(_fit_key(part, row.keys[part]) for part in group.keys)
        before = self._sums[name].get(key, (decimal.Decimal(0),) * len(names))
        return key, tuple(fitted(measure, row.measures[measure.name], old)
                          for measure, old in zip(group.measures, before))

    def to_proto(self) -> handler_service_pb2.HandlerResult:
        return handler_service_pb2.HandlerResult(
            groups=[item_result_pb2.GroupPartial(group=name, rows=[
                item_result_pb2.PartialRow(keys=key, measures=[f"{sum:f}" for sum in sums])
                for key, sums in rows.items()]) for name, rows in self._sums.items() if rows],
            rejected=[item_result_pb2.Rejection(line=line, reason=reason)
                      for line, reason in self._rejected.items()],
            outputs=[item_result_pb2.OutputRecord(line=line, fields=fields)
                     for line, fields in self._outputs if line not in self._rejected])


def _fit_key(name: str, key: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{name}: a {type(key).__name__} is no text")
    if len(fitted_text(name, key).encode()) > MAX_KEY_BYTES:
        raise Unfit(f"{name}: longer than {MAX_KEY_BYTES} bytes")
    return key
