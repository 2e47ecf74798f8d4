#!/usr/bin/env bash
# csvjson 5.1.0 (JSON to CSV and back, for JavaScript): toCSV() writes a tab where a text has the delimiter. "Meyer,
# Anna" comes back as "Meyer", a tab and " Anna".
#
# Guess: the text is put in quotes, as RFC 4180 has it and as the same package reads it with its option quote.
# Seen: "Meyer", a tab, " Anna", and 1,50 is 1, a tab and 50. With wrap all texts are in quotes and keep the comma, but
# a quote in them is not doubled, and cannot be told from the end of the text.
#
# Who it hurts: whoever exports names, addresses or amounts such as 1,50: they are changed for good, and a search for
# the name or a comparison with the source fails.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" csvjson@5.1.0
cat > "$work/seen.cjs" << 'PROGRAM'
const csvjson = require("csvjson");

const rows = [{ name: "Meyer, Anna", part: '27" screen', price: "1,50" }];
const texts = [{}, { wrap: true }].map((options) => csvjson.toCSV(rows, { headers: "key", ...options }));
const back = csvjson.toObject(texts[0], { delimiter: ",", quote: '"' });
console.log(texts.map((text) => JSON.stringify(text.split("\n")[1])).join(" "), JSON.stringify(back[0].name));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "csvjson 5.1.0, a row, the row with wrap, and its name read back: $seen"
[ "$seen" = '"Meyer\t Anna,27\" screen,1\t50" "\"Meyer, Anna\",\"27\" screen\",\"1,50\"" "Meyer\t Anna"' ]
