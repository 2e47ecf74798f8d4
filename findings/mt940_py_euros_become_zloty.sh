#!/usr/bin/env bash
# mt940-py 0.1.7 (CSV of mBank to MT940, for Python): the balances of an account in euros are in zloty. The currency is
# PLN, whatever the file says.
#
# Guess: EUR in :60F: and :62F:, for the file names it as #Waluta and behind the balance, or an error.
# Seen: 1 000,00 EUR is C261130PLN1000,00. The letters behind an amount are dropped. The amounts are right.
#
# Who it hurts: whoever imports the statement of a currency account: 1000 euros are booked as 1000 zloty, less than a
# quarter, and no sum in the statement disagrees.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check mt940-py==0.1.7 mt-940==5.1.1
cat > "$work/seen.py" << 'PYTHON'
from mt940_py.converter import MT940Converter

STATEMENT = """#Waluta;
EUR;
#Numer rachunku;
00 1140 0000 0000 0000 0000 0001;
#Saldo początkowe;1 000,00 EUR;
#Data księgowania;#Data operacji;#Opis operacji;#Tytuł;#Nadawca/Odbiorca;#Numer konta;#Kwota;#Saldo po operacji;
2026-11-30;2026-11-30;PRZELEW;INVOICE 1;ACME;;250,00 EUR;1 250,00 EUR;
"""
lines = MT940Converter().convert(STATEMENT).splitlines()
print(*(line for line in lines if line.startswith((":25", ":6"))), sep="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "mt940-py 0.1.7: $seen"
[ "$seen" = ":25:/PL00114000000000000000000001; :60F:C261130PLN1000,00; \
:61:2611301130C250,00SD9500000000001; :62F:C261130PLN1250,00" ]
