#!/usr/bin/env bash
# python-cfonb 2.13 (statements of French banks in CFONB's format for Python): an amount is written without its point
# and read with two decimals, whatever it has. 100 euros are one euro, and 123.4 are 12.34.
#
# Guess: 100.00 and 123.40. The number of decimals that it writes into each record is 2.
# Seen: 1.00 and 12.34. So are Decimal("100") and Decimal("123.4"). What has two decimals, such as 123.45 or
# Decimal("100.00"), is right, and the reader of the package agrees with the records.
#
# Who it hurts: whoever writes statements from numbers: one amount in ten ends with a zero, and is a tenth or a
# hundredth in a file that looks right.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check python-cfonb==2.13
cat > "$work/seen.py" << 'PYTHON'
import io
from datetime import date
from decimal import Decimal
from cfonb import Statement, StatementReader

ACCOUNT = ("30002", "00001", "EUR", "0001234567A", date(2026, 3, 2))
for amount in (100, 123.4, Decimal("12.5"), -100, 123.45, Decimal("100.00")):
    statement = Statement().header(*ACCOUNT, amount).footer(*ACCOUNT, amount)
    statement.add("30002", "0001", "00001", "EUR", "0001234567A", date(2026, 3, 2), "payment", amount, "reference")
    read = StatementReader().parse(io.StringIO(statement.render()))[0]
    print(amount, read.lines[0].amount, end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "python-cfonb 2.13, amounts and what is read back: $seen"
[ "$seen" = "100 1.00; 123.4 12.34; 12.5 1.25; -100 -1.00; 123.45 123.45; 100.00 100.00; " ]
