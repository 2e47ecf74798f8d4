# SPDX-License-Identifier: Apache-2.0
"""JSON that keeps Decimals exact."""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Mapping
from typing import Any


def to_json(value: Any, *, floats: bool) -> str:
    """TypeError: a value that is none of JSON's, or a float although `floats` are not to be there."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_quoted(str(name))}:{to_json(member, floats=floats)}"
                              for name, member in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(to_json(member, floats=floats) for member in value) + "]"
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            raise TypeError(f"{value} is no number of JSON")
        return f"{value:f}"
    if isinstance(value, float):
        if not floats:
            raise TypeError("a float is not exact; give a Decimal or a text")
        if not math.isfinite(value):
            raise TypeError(f"{value} is no number of JSON")
    return json.dumps(value, ensure_ascii=False)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
