#!/usr/bin/env bash
# Polars 2.1.0 (for Python): the product of two decimals has as many digits after the point as the longer factor, and is
# rounded to them. 0.05 times 0.05 is 0.00.
#
# Guess: a product is exact while it fits 38 digits, as in SQL, in Apache Arrow (0.0025) and in Python's decimal: the
# digits of both factors add up.
# Seen: decimals of two places give 0.00, and 19.99 (two places) times 0.0725 (four) is 1.4493, not 1.449275. A factor
# with more places, such as 0.0500, has the product right.
#
# Who it hurts: whoever takes decimals to have sums of money exact. Rounded per line and summed, taxes or discounts of a
# file are off by cents, and small ones vanish.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check polars==2.1.0
cat > "$work/seen.py" << 'PYTHON'
from decimal import Decimal
import polars


def product(first, second):
    return (polars.Series([Decimal(first)]) * polars.Series([Decimal(second)]))[0]


print(product("0.05", "0.05"), product("19.99", "0.0725"), product("0.05", "0.0500"))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "polars 2.1.0: 0.05 * 0.05, 19.99 * 0.0725, 0.05 * 0.0500: $seen"
[ "$seen" = "0.00 1.4493 0.0025" ]
