#!/usr/bin/env bash
# csvjson-csv2json 5.0.6 (CSV to JSON, for JavaScript; of the tool CSVJSON): of a text that ends or begins with a
# quote that quote is lost. "3.5""" is 3.5, and with parseNumbers a number.
#
# Guess: the text 3.5", as RFC 4180 doubles quotes in a text, and as the package does it within a text.
# Seen: 3.5. A text that is quoted as a whole, """yes""", is yes, and one that ends with a quoted word has one quote, at
# its beginning. In the middle of a text quotes stay.
#
# Who it hurts: whoever converts lists of parts in inches: 3.5 without a unit is read as another measure, and the file
# cannot be made again from the JSON.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" csvjson-csv2json@5.0.6
cat > "$work/seen.cjs" << 'PROGRAM'
const csv2json = require("csvjson-csv2json");

const texts = ['"3.5"""', '"""yes"""', '"he said ""yes"""', '"a ""small"" part"'];
const csv = "id,text\n" + texts.map((text, index) => `${index + 1},${text}\n`).join("");
console.log(JSON.stringify(csv2json(csv, { parseNumbers: true }).map((row) => row.text)));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "csvjson-csv2json 5.0.6: $seen"
[ "$seen" = '[3.5,"yes","he said \"yes","a \"small\" part"]' ]
