"""What a handler makes of an item: exact sums, and the lines that it rejects."""

from __future__ import annotations

import decimal
from collections.abc import Mapping

from muster._report import Group, Measure, Number, Row
from muster.v1 import handler_service_pb2, item_result_pb2

# As muster's processors take them.
MAX_KEY_BYTES = 1024
_MAX_DIGITS = 38
_MAX_WHOLE = 2**63

# Python's usual precision is 28 digits: beyond, it rounds.
_EXACT = decimal.Context(prec=200, traps=[decimal.Inexact, decimal.InvalidOperation])


class Unfit(ValueError):
    """A number or key that the job's groups do not take; says why as a rejection would."""


class Results:
    """Adds up an item. Not thread-safe; each item has its own."""

    def __init__(self, groups: Mapping[str, Group], lines: frozenset[int]) -> None:
        self._groups = groups
        self._lines = lines
        self._sums: dict[str, dict[tuple[str, ...], tuple[decimal.Decimal, ...]]] = {
            name: {} for name in groups}
        self._rejected: dict[int, str] = {}

    def add(self, rows: Mapping[str, Row]) -> None:
        """Adds a row to each of these groups, or to none.

        Unfit, to be told by `reject`: a measure with more decimals than its group keeps, a sum that
        does not fit, a key of more than 1,024 bytes. KeyError, TypeError: the program is wrong.
        """
        sums = [(name, key, after) for name, row in rows.items()
                for key, after in [self._with(name, row)]]
        for name, key, after in sums:
            self._sums[name][key] = after

    def reject(self, line: int, reason: str) -> None:
        """The transaction that begins at `line` does not count."""
        if line not in self._lines:
            raise KeyError(f"no transaction begins at line {line}")
        self._rejected.setdefault(line, reason)

    def _with(self, name: str, row: Row) -> tuple[tuple[str, ...], tuple[decimal.Decimal, ...]]:
        group = self._groups[name]
        names = [measure.name for measure in group.measures]
        if set(row.keys) != set(group.keys) or set(row.measures) != set(names):
            raise KeyError(f"a row of {name} has the keys {', '.join(group.keys)} and the measures "
                           f"{', '.join(names)}")
        key = tuple(_fit_key(part, row.keys[part]) for part in group.keys)
        before = self._sums[name].get(key, (decimal.Decimal(0),) * len(names))
        return key, tuple(_sum(measure, old, row.measures[measure.name])
                          for measure, old in zip(group.measures, before))

    def to_proto(self) -> handler_service_pb2.HandlerResult:
        return handler_service_pb2.HandlerResult(
            groups=[item_result_pb2.GroupPartial(group=name, rows=[
                item_result_pb2.PartialRow(keys=key, measures=[f"{sum:f}" for sum in sums])
                for key, sums in rows.items()]) for name, rows in self._sums.items() if rows],
            rejected=[item_result_pb2.Rejection(line=line, reason=reason)
                      for line, reason in self._rejected.items()])


def _fit_key(name: str, key: str) -> str:
    if len(key.encode()) > MAX_KEY_BYTES:
        raise Unfit(f"{name}: longer than {MAX_KEY_BYTES} bytes")
    return key


def _sum(measure: Measure, before: decimal.Decimal, more: Number) -> decimal.Decimal:
    """All sums have the measure's scale."""
    if isinstance(more, float) or not isinstance(more, (int, decimal.Decimal)):
        raise TypeError(f"{measure.name}: a {type(more).__name__} is not exact")
    number = decimal.Decimal(more)
    if not number.is_finite():
        raise Unfit(f"{measure.name}: {number} is no number")
    if number.adjusted() > _MAX_DIGITS:
        raise Unfit(f"{measure.name}: overflows")
    try:
        # With the scale's exponent, so that Inexact says that there are decimals beyond it.
        fitted = _EXACT.quantize(number, decimal.Decimal((0, (1,), -measure.scale)))
    except decimal.Inexact:
        raise Unfit(f"{measure.name}: {number:f} needs more than {measure.scale} decimals") from None
    after = _EXACT.add(before, fitted)
    fits = -_MAX_WHOLE <= after < _MAX_WHOLE if measure.whole else after.adjusted() < (
        _MAX_DIGITS - measure.scale)
    if not fits:
        raise Unfit(f"{measure.name}: overflows")
    return after
