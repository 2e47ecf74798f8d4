#!/usr/bin/env bash
# comma-separated-values 3.6.4 (CSV for JavaScript): the first row decides what a column is, and an empty field is a
# number. Where the first row has no note, the notes of all rows are NaN.
#
# Guess: notes stay texts. The documentation says that numbers and booleans are cast, which "late" is not.
# Seen: 0, NaN and NaN. A first order number of 12 makes PO-13 NaN, and an amount that is missing further down is 0.
# With PO-13 in the first row all are texts, 007 among them.
#
# Who it hurts: whoever reads exports with columns that are mostly empty: texts are gone without an error, and only in
# the files whose first row has none.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" comma-separated-values@3.6.4
cat > "$work/seen.cjs" << 'PROGRAM'
const CSV = require("comma-separated-values");

const column = (fields) => {
  const rows = fields.map((field, index) => `${index + 1},${field}\n`);
  return CSV.parse("id,field\n" + rows.join(""), { header: true }).map((row) => row.field).join(" ");
};
const columns = [["", "late", "paid"], ["12", "PO-13"], ["3", "", "5"], ["PO-13", "12", "007"]];
console.log(columns.map(column).join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "comma-separated-values 3.6.4, columns of '', late, paid; of 12, PO-13; of 3, '', 5; and of PO-13, 12, 007: $seen"
[ "$seen" = "0 NaN NaN; 12 NaN; 3 0 5; PO-13 12 007" ]
