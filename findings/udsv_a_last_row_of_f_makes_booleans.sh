#!/usr/bin/env bash
# udsv 0.7.3 (for JavaScript): a column of texts becomes one of booleans when the last of the rows that the
# schema is guessed from (nine, unless said) has F, T, N, Y, no or yes. All other texts are false.
#
# Guess: a column is boolean when all its values are; a column of A, B, C and F is text, as one of 1, 2 and x is.
# Seen: the bands A, B, C, F are four times false, and No, Maybe, Yes are false, false, true. A, B, F, C are texts.
#
# Who it hurts: importers that let the types be guessed: codes of tariffs, grades or answers are lost where the last row
# happens to be such a letter, and stay in the next file, which is in another order.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" udsv@0.7.3
cat > "$work/seen.mjs" << 'PROGRAM'
import { inferSchema, initParser } from "udsv";

for (const values of [["A", "B", "C", "F"], ["No", "Maybe", "Yes"], ["A", "B", "F", "C"], ["1", "2", "x"]]) {
  const csv = ["band", ...values, ""].join("\n");
  console.log(initParser(inferSchema(csv)).typedObjs(csv).map((row) => JSON.stringify(row.band)).join(" "));
}
PROGRAM
seen=$(node "$work/seen.mjs" | paste --serial --delimiters ';')
echo "udsv 0.7.3: $seen"
[ "$seen" = 'false false false false;false false true;"A" "B" "F" "C";"1" "2" "x"' ]
