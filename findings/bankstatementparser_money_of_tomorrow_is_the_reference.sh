#!/usr/bin/env bash
# bankstatementparser 0.0.29 (bank statements for Python): where a transaction of a BAI2 file says when its money is
# available, the parts or the date of that are taken for its references and its text.
#
# Guess: 16,195,50000,S,20000,20000,10000,REF2,CUST2,RENT is 500.00 with the bank's reference REF2 and the text RENT:
# after the funds type S come three amounts, after V a date and a time, and the references after that. So has bai2
# 0.8.2.
# Seen: the reference is 20000 and the text 10000, and with V the reference is the date. With the types 0, 1, 2, Z or
# none it is right. The amounts are right.
#
# Who it hurts: whoever matches payments or drops repeated ones by the reference: all checks of one value date have the
# same one, and what the payer wrote is gone.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check bankstatementparser==0.0.29 bai2==0.8.2
cat > "$work/statement.bai" << 'STATEMENT'
01,BANK,FIRM,260131,0600,1,,,2/
02,FIRM,BANK,1,260130,,EUR,2/
03,12345,EUR,015,175000,,/
16,195,100000,Z,REF1,CUST1,WAGES
16,195,50000,S,20000,20000,10000,REF2,CUST2,RENT
16,195,25000,V,260201,,REF3,CUST3,CHECK
49,350000,5/
98,350000,1,7/
99,350000,1,9/
STATEMENT
cat > "$work/seen.py" << 'PYTHON'
import logging

from bai2 import bai2
from bankstatementparser import Bai2Parser

logging.disable()
rows = Bai2Parser("statement.bai").parse()
print(*(" ".join(row) for row in rows[["transaction_id", "Reference", "description"]].values), sep=", ", end="; ")
with open("statement.bai") as statement:
    account = bai2.parse_from_file(statement).children[0].children[0]
print(*(f"{of.bank_reference} {of.customer_reference} {of.text}" for of in account.children), sep=", ")
PYTHON
seen=$(cd "$work" && venv/bin/python seen.py)
echo "bankstatementparser 0.0.29; bai2 0.8.2, references and texts of transactions of the types Z, S and V: $seen"
right="REF1 CUST1 WAGES, REF2 CUST2 RENT, REF3 CUST3 CHECK"
[ "$seen" = "REF1 CUST1 WAGES, 20000 20000 10000, 260201 260201 REF3; $right" ]
