#!/usr/bin/env bash
# pyarrow 26.0.1: the quotient of two decimals is cut off, not rounded. The mean of decimals is rounded.
#
# Guess: 2.00 / 3.00 ends in 7, as in SQL databases, in Python's decimal, and as mean() of the same library has it.
# Seen: divide(2.00, 3.00) is 0.66666666666, with eleven places, and divide(-2.00, 3.00) is -0.66666666666. mean() of
# 1.00, 1.00 and 0.00 is 0.67.
#
# Who it hurts: whoever computes rates or shares as decimals to agree with a database to the last digit. All are too
# near zero or right, never too far from it: the difference does not level out in a sum.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check pyarrow==26.0.1
cat > "$work/seen.py" << 'PYTHON'
from decimal import Decimal
import pyarrow, pyarrow.compute


def decimals(*texts):
    return pyarrow.array([Decimal(text) for text in texts], pyarrow.decimal128(10, 2))


quotients = pyarrow.compute.divide(decimals("2.00", "-2.00"), decimals("3.00", "3.00"))
print(*quotients.to_pylist(), pyarrow.compute.mean(decimals("1.00", "1.00", "0.00")).as_py())
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "pyarrow 26.0.1: 2.00 / 3.00, -2.00 / 3.00, and a mean of two thirds: $seen"
[ "$seen" = "0.66666666666 -0.66666666666 0.67" ]
