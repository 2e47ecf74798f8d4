#!/usr/bin/env bash
# sepaxml 2.7.0 (SEPA payments in ISO 20022's XML for Python): with batch set to False the address of whoever sends the
# file is left out, in transfers and in direct debits.
#
# Guess: the address from the settings is in the file, as with batch set to True. The documentation has it in the
# settings of both kinds, and says that some countries require it.
# Seen: the name alone. The address of the other side, which each payment brings along, is there in all four cases, and
# the file is valid against the schema.
#
# Who it hurts: whoever has each payment booked on its own: banks that ask for the address refuse or delay the payments,
# and the settings look right.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check sepaxml==2.7.0
cat > "$work/seen.py" << 'PYTHON'
import re
from datetime import date
from sepaxml import SepaDD, SepaTransfer

DAY = date(2026, 12, 1)
BANK = {"IBAN": "DE00123456780000000000", "BIC": "BANKDEFF"}


def towns(kind, schema, batch):
    """The town of the debtor and of the creditor."""
    config = {**BANK, "name": "Sender", "currency": "EUR", "batch": batch, "creditor_id": "DE26ZZZ00000000000"}
    payment = {**BANK, "name": "Other", "amount": 1012, "description": "invoice", "type": "RCUR", "mandate_id": "1"}
    payments = kind({**config, "address": {"town": "Berlin", "country": "DE"}}, schema=schema)
    dates = {"execution_date": DAY, "collection_date": DAY, "mandate_date": DAY}
    payments.add_payment({**payment, **dates, "address": {"town": "Hamburg", "country": "DE"}})
    parts = re.findall("<(?:Dbtr|Cdtr)>(.*?)</(?:Dbtr|Cdtr)>", payments.export().decode())
    return " ".join("".join(re.findall("<TwnNm>(.*?)<", part)) or "none" for part in parts)


for kind, schema in ((SepaTransfer, "pain.001.001.09"), (SepaDD, "pain.008.001.08")):
    print(*(towns(kind, schema, batch) for batch in (True, False)), sep=", ", end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "sepaxml 2.7.0, towns of both sides with and without a batch, in transfers and direct debits: $seen"
[ "$seen" = "Berlin Hamburg, none Hamburg; Berlin Hamburg, none Hamburg; " ]
