#!/usr/bin/env bash
# python-cfonb 2.13 (statements of French banks in CFONB's format for Python): an amount in a currency without decimals
# gets its point before all digits. 12345 francs of the Pacific (XPF) are 0.00000000012345.
#
# Guess: 12345. Each record names its number of decimals, and for XPF, the currency of New Caledonia and Tahiti, or yen
# it is 0.
# Seen: 1.2345E-10, in the lines and in both balances. With 2 decimals it is 123.45, and with 3 12.345.
#
# Who it hurts: whoever reads statements of accounts overseas or in yen: all payments are nothing, and the balances,
# which are nothing too, agree with them.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check python-cfonb==2.13
cat > "$work/seen.py" << 'PYTHON'
import io
from cfonb import StatementReader


def record(code, decimals, middle):
    """A record with the digits 12345, of which the last one is E in this format, where the amount is positive."""
    return f"{code}30002    00001XPF{decimals} 0001234567A{middle}0000000001234E{'':16}\n"


for decimals in (0, 2, 3):
    balance = f"  010326{'':50}"
    payment = f"08020326  020326{'payment':31}{'':11}"
    text = record("01", decimals, balance) + record("04", decimals, payment) + record("07", decimals, balance)
    statement = StatementReader().parse(io.StringIO(text))[0]
    print(statement.header.prev_amount, statement.lines[0].amount, statement.footer.next_amount, end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "python-cfonb 2.13, balance, payment and balance with 0, 2 and 3 decimals: $seen"
[ "$seen" = "1.2345E-10 1.2345E-10 1.2345E-10; 123.45 123.45 123.45; 12.345 12.345 12.345; " ]
