#!/usr/bin/env bash
# convert-array-to-csv 2.0.0 (objects to CSV for JavaScript): the values of an object go into the columns in the order
# in which the object has them, whatever their names. The tax of one invoice stands below the order of another.
#
# Guess: each value below its name: A2,20,3.8 for { tax: 3.8, order: "A2", net: 20 } below order,net,tax.
# Seen: 3.8,A2,20. Of an object without a net the tax is in the column net, and its row is short. With the option
# header, which names the columns, it is the same.
#
# Who it hurts: whoever exports objects from more than one place, or with optional fields: amounts move to other columns
# in some rows, and sums are wrong.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" convert-array-to-csv@2.0.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { convertArrayToCSV } = require("convert-array-to-csv");

const rows = [{ order: "A1", net: 10, tax: 1.9 }, { tax: 3.8, order: "A2", net: 20 }, { order: "A3", tax: 5.7 }];
const texts = [undefined, ["order", "net", "tax"]].map((header) => convertArrayToCSV(rows, { header }));
console.log(texts.map((text) => text.trim().split("\n").join(" ")).join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "convert-array-to-csv 2.0.0, without and with a header: $seen"
[ "$seen" = "order,net,tax A1,10,1.9 3.8,A2,20 A3,5.7; order,net,tax A1,10,1.9 3.8,A2,20 A3,5.7" ]
