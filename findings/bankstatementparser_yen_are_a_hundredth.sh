#!/usr/bin/env bash
# bankstatementparser 0.0.29 (bank statements for Python): amounts of BAI2 files have two decimals in each currency.
# 100,000 yen are 1,000 JPY, and 100 dinars of Kuwait, written 100000, are 1,000 KWD.
#
# Guess: a BAI2 file has amounts without a point, in the smallest unit of the currency that it names, so of yen 100000
# is 100,000, of euros 1,000.00, and of dinars, which have three decimals, 100.000.
# Seen: 1000 of each. An amount of MT940, which has a comma, is right in each currency.
#
# Who it hurts: a treasury with accounts in Tokyo or Kuwait: amounts are a hundredth, or ten times as much. The totals
# of the same file, read in the same way, agree with them.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check bankstatementparser==0.0.29
cat > "$work/seen.py" << 'PYTHON'
import logging

from bankstatementparser import Bai2Parser

logging.disable()
for currency in "EUR", "JPY", "KWD":
    with open("statement.bai", "w") as statement:
        statement.write(f"01,BANK,FIRM,260131,0600,1,,,2/\n02,FIRM,BANK,1,260130,,{currency},2/\n"
                        f"03,12345,{currency},015,100000,,/\n16,195,100000,Z,REFERENCE,,A PAYMENT\n"
                        "49,200000,3/\n98,200000,1,5/\n99,200000,1,7/\n")
    print(Bai2Parser("statement.bai").parse()["Amount"][0], currency, end="; ")
PYTHON
seen=$(cd "$work" && venv/bin/python seen.py)
echo "bankstatementparser 0.0.29, 100000 of a BAI2 file in EUR, JPY and KWD: $seen"
[ "$seen" = "1000 EUR; 1000 JPY; 1000 KWD; " ]
