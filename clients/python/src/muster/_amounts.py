# SPDX-License-Identifier: Apache-2.0
"""Exact amounts, within the bounds that muster's processors have."""

from __future__ import annotations

import decimal

from muster._report import Measure, Number

_MAX_DIGITS = 38
_MAX_WHOLE = 2**63
_MAX_SHOWN = 40  # characters of a number in a reason

# Python's usual precision is 28 digits: beyond, it rounds.
_EXACT = decimal.Context(prec=200, traps=[decimal.Inexact, decimal.InvalidOperation])


class Unfit(ValueError):
    """A number, key or text that the job does not take; says why as a rejection would."""


def fitted(measure: Measure, more: Number,
           before: decimal.Decimal = decimal.Decimal(0)) -> decimal.Decimal:
    """The sum of what was there before and `more`, with the measure's scale.

    Unfit: the measure does not take it. TypeError: it is not exact.
    """
    if isinstance(more, bool) or not isinstance(more, (int, decimal.Decimal)):
        raise TypeError(f"{measure.name}: a {type(more).__name__} is not exact")
    number = decimal.Decimal(more)
    if not number.is_finite():
        raise Unfit(f"{measure.name}: {_shown(number)} is no number")
    if number.adjusted() > _MAX_DIGITS:
        raise Unfit(f"{measure.name}: overflows")
    try:
        # With the scale's exponent, so that Inexact says that there are decimals beyond it.
        fit = _EXACT.quantize(number, decimal.Decimal((0, (1,), -measure.scale)))
    except decimal.Inexact:
        raise Unfit(f"{measure.name}: {_shown(number)} needs more than {measure.scale} decimals"
                    ) from None
    after = _EXACT.add(before, fit)
    fits = -_MAX_WHOLE <= after < _MAX_WHOLE if measure.whole else after.adjusted() < (
        _MAX_DIGITS - measure.scale)
    if not fits:
        raise Unfit(f"{measure.name}: overflows")
    return after


def _shown(number: decimal.Decimal) -> str:
    """As people write it, or the beginning of it: a number may have millions of digits."""
    text = str(number)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
