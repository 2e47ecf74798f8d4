#!/usr/bin/env bash
# mt940-js 1.0.0 (bank statements of MT940 for JavaScript): the reversal of a credit (RC) is a credit like any other,
# and that of a debit (RD) a debit. The day of entry in the new year is of the old one.
#
# Guess: RC takes the money away again, as the statement's balance says, or a field tells that it is a reversal. The
# entry of 4 January for a value of 31 December 2026 is of 2027, as mt-940 5.1.1 (for Python) has it.
# Seen: 10 (C) and its reversal (RC) have isCredit true and the amount 10, and the reversed debit of 5 (RD) isCredit
# false. The lines add up to 15 in a statement whose balance goes from 100 to 105. The entry is of 2026-01-04.
#
# Who it hurts: bookkeeping that adds up the lines: a payment that bounced counts twice instead of not at all. And
# whoever closes the old year by the day of entry has bookings of the new year in its January.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" mt940-js@1.0.0 tslib@2.9.1
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check mt-940==5.1.1
cat > "$work/statement.sta" << 'STATEMENT'
:20:1
:25:DE00/1
:28C:1/1
:60F:C261101EUR100,00
:61:2611021102C10,00NTRFNONREF
:61:2611031103RC10,00NTRFNONREF
:61:2612310104RD5,00NTRFNONREF
:62F:C261231EUR105,00
STATEMENT
cat > "$work/seen.cjs" << 'PROGRAM'
const { readFileSync } = require("node:fs");
const { read } = require("mt940-js");

read(readFileSync("statement.sta")).then(([{ openingBalance, closingBalance, transactions }]) => {
  const sum = transactions.reduce((total, { isCredit, amount }) => total + (isCredit ? amount : -amount), 0);
  console.log(openingBalance.value, closingBalance.value, sum,
    ...transactions.map(({ isCredit, amount, entryDate }) => `${isCredit ? "+" : "-"}${amount} ${entryDate}`));
});
PROGRAM
cat > "$work/seen.py" << 'PYTHON'
import mt940

print(mt940.parse("statement.sta")[2].data["entry_date"])
PYTHON
seen="$(cd "$work" && node seen.cjs), $(cd "$work" && venv/bin/python seen.py)"
echo "mt940-js 1.0.0 and mt-940 5.1.1: $seen"
[ "$seen" = "100 105 15 +10 2026-11-02 +10 2026-11-03 -5 2026-01-04, 2027-01-04" ]
