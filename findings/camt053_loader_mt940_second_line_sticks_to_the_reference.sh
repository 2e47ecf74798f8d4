#!/usr/bin/env bash
# camt053-loader-mt940 0.0.23 (bank statements of MT940 as camt.053 for Python): the second line of a :61:, where banks
# put further details, is joined to the reference without a space. BANK1 is "BANK1INSTALMENT 7".
#
# Guess: the bank's reference is BANK1, for it ends with its line, and the details are apart or left out.
# Seen: "BANK1INSTALMENT 7". Where there is no reference of the bank, it is that of the customer: NONREF, which stands
# for none, is "NONREFINSTALMENT 7". The first line alone gives REF1 and BANK1.
#
# Who it hurts: bookkeeping that finds the open invoice or the payment by its reference: no entry with a second line is
# found any more, and NONREF looks like a reference.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
  camt053==0.0.23 camt053-loader-mt940==0.0.23
cat > "$work/seen.py" << 'PYTHON'
from camt053_loader_mt940 import parse_mt940

STATEMENT = """:20:START
:25:BANK/1
:28C:1/1
:60F:C261101EUR100,00
:61:2611021102D10,00NTRFREF1//BANK1
:61:2611021102D10,00NTRFREF1//BANK1
INSTALMENT 7
:61:2611021102D10,00NTRFNONREF
INSTALMENT 7
:62F:C261102EUR70,00
"""
for entry in parse_mt940(STATEMENT).statements[0].entries:
    print(entry.reference, entry.account_servicer_ref, end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "camt053-loader-mt940 0.0.23, references of customer and bank: $seen"
[ "$seen" = "REF1 BANK1; REF1 BANK1INSTALMENT 7; NONREFINSTALMENT 7 None; " ]
