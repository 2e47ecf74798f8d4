#!/usr/bin/env bash
# parsecurrency 1.1.1 (amounts in texts, for JavaScript): a point that no digit stands before is taken for one of
# thousands, and $.75 is 75.
#
# Guess: 0.75, as $0.75 is, or null, as for texts that it cannot read.
# Seen: 75. .5 EUR is 5, -$.05 is -5, and the field decimals is empty. $0.75, 1,250.75 and 1.250,75 are right.
#
# Who it hurts: whoever reads price lists or exports that leave the zero out, as spreadsheets with the format #.00 and
# Oracle's to_char do: what costs less than a dollar becomes a hundred times as much.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" parsecurrency@1.1.1
cat > "$work/seen.cjs" << 'PROGRAM'
const parse = require("parsecurrency");

const texts = ["$.75", ".5 EUR", "-$.05", "$0.75", "$1,250.75", "1.250,75 EUR"];
console.log(texts.map((text) => parse(text).value).join(" "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "parsecurrency 1.1.1, \$.75, .5 EUR, -\$.05, \$0.75, \$1,250.75 and 1.250,75 EUR: $seen"
[ "$seen" = "75 5 -5 0.75 1250.75 1250.75" ]
