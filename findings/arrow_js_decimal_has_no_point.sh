#!/usr/bin/env bash
# apache-arrow 21.2.0 (for JavaScript) shows decimals without their point: 1.15 of decimal128(9, 2) is "115".
#
# Guess: a value of a table that was read prints as 1.15, as pyarrow 26.0.1 prints it, or is a number.
# Seen: String() and toString() of the table have 115, 110 and 1999 for 1.15, 1.10 and 19.99. JSON has "115" in one more
# pair of quotes.
#
# Who it hurts: web pages and exports that show amounts of an Arrow or Feather file: each is a hundred times as large,
# with a scale of four ten thousand times. The columns of one table differ, as each has a scale of its own.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" apache-arrow@21.2.0
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check pyarrow==26.0.1
cat > "$work/make.py" << 'PYTHON'
import sys
from decimal import Decimal
import pyarrow

amounts = pyarrow.array([Decimal("1.15"), Decimal("1.10"), Decimal("19.99")], pyarrow.decimal128(9, 2))
table = pyarrow.table({"amount": amounts})
with pyarrow.ipc.new_file(sys.argv[1], table.schema) as file:
    file.write_table(table)
print(*table["amount"].to_pylist())
PYTHON
cat > "$work/seen.mjs" << 'PROGRAM'
import { readFileSync } from "node:fs";
import { tableFromIPC } from "apache-arrow";

const rows = tableFromIPC(readFileSync(process.argv[2])).toArray();
console.log(...rows.map((row) => String(row.amount)), JSON.stringify(rows[0]));
PROGRAM
seen="$("$work/venv/bin/python" "$work/make.py" "$work/table.arrow"), $(node "$work/seen.mjs" "$work/table.arrow")"
echo "pyarrow 26.0.1 and apache-arrow 21.2.0: $seen"
[ "$seen" = '1.15 1.10 19.99, 115 110 1999 {"amount":"\"115\""}' ]
