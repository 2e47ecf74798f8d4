#!/usr/bin/env bash
# qifparse 0.5 (bank transactions of QIF for Python): the amount of a split loses its last character. -100 is -10, and
# -10.25 is -10.2.
#
# Guess: -100 and -10.25, which with their transaction's -110.25 add up.
# Seen: -10 and -10.2, and the memos "offic" and "mete". Amount and memo of the transaction itself are whole. What it
# writes has the shorter ones.
#
# Who it hurts: whoever books by category: an amount without decimals becomes a tenth, and nothing compares the splits
# with the sum.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check qifparse==0.5 six==1.17.0
cat > "$work/seen.qif" << 'QIF'
!Type:Bank
D03/02/2026
T-110.25
Mrent
SRent
Eoffice
$-100
SPower
Emeter
$-10.25
^
QIF
cat > "$work/seen.py" << 'PYTHON'
import sys
from qifparse.parser import QifParser

with open(sys.argv[1]) as file:
    ((transaction,),) = QifParser.parse(file).get_transactions()
print(transaction.amount, transaction.memo, *((split.amount, split.memo) for split in transaction.splits))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py" "$work/seen.qif")
echo "qifparse 0.5: $seen"
[ "$seen" = "-110.25 rent (-10.0, 'offic') (-10.2, 'mete')" ]
