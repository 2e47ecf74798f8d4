#!/usr/bin/env bash
# csvjson 5.1.0 (CSV to JSON, for JavaScript): of a text in quotes that has a quote in it, doubled as RFC 4180 has it,
# only what stands after its last quote is left.
#
# Guess: '27" screen, black' for "27"" screen, black", with quote set to the quote.
# Seen: "screen, black" is what is left, and of a text that ends with a quote nothing at all. A text in
# quotes without one in it is right.
#
# Who it hurts: whoever imports articles with sizes in inches or quoted remarks: the beginning of the text is dropped,
# and there is no error.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" csvjson@5.1.0
cat > "$work/seen.cjs" << 'PROGRAM'
const csvjson = require("csvjson");

const texts = ['"black, matt"', '"27"" screen, black"', '"he said ""yes"""', '"a ""small"" part"'];
const csv = "id,text\n" + texts.map((text, index) => `${index + 1},${text}\n`).join("");
console.log(JSON.stringify(csvjson.toObject(csv, { delimiter: ",", quote: '"' }).map((row) => row.text)));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "csvjson 5.1.0: $seen"
[ "$seen" = '["black, matt","screen, black","","part"]' ]
