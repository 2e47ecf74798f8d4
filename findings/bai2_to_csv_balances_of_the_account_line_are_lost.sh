#!/usr/bin/env bash
# bai2-to-csv 0.1.0 (BAI2 files of banks for Python): balances that stand on the line of the account are not in the
# summary; of those on lines that continue it, the first of each line is.
#
# Guess: 03,12345,EUR,010,100000,,,015,250000,, and 88,100,150000,2,,400,50000,1, are four rows: an opening and a
# closing balance, and the sums of credits and of debits. So has bai2 0.8.2.
# Seen: one row, the sum of credits. Without the line 88 the summary is empty; there is no error.
#
# Who it hurts: whoever checks movements against the balances, or books the balances: most banks write them on the line
# of the account, up to the length of a line.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check bai2-to-csv==0.1.0 bai2==0.8.2 \
  pandas==2.3.3 pydantic==2.14.4
cat > "$work/statement.bai" << 'STATEMENT'
01,BANK,FIRM,260131,0600,1,,,2/
02,FIRM,BANK,1,260130,,EUR,2/
03,12345,EUR,010,100000,,,015,250000,,/
88,100,150000,2,,400,50000,1,/
16,195,150000,Z,REF1,CUST1,RENT
49,700000,4/
98,700000,1,6/
99,700000,1,8/
STATEMENT
cat > "$work/seen.py" << 'PYTHON'
from bai2 import bai2
from bai2_to_csv import Bai2Converter

summary, detail = Bai2Converter().convert_to_dataframes("statement.bai")
print(*summary["transaction_bai_code"], end="; ")
with open("statement.bai") as statement:
    account = bai2.parse_from_file(statement).children[0].children[0]
print(*(item.type_code.code for item in account.header.summary_items))
PYTHON
seen=$(cd "$work" && venv/bin/python -W ignore seen.py)
echo "codes of the summary, by bai2-to-csv 0.1.0; by bai2 0.8.2: $seen"
[ "$seen" = "100; 010 015 100 400" ]
