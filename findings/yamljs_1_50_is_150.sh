#!/usr/bin/env bash
# yamljs 0.3.0 (YAML 1.2 for JavaScript): a comma between digits is taken away. 1,50 is 150, and 1,2,3 is 12.
#
# Guess: the text "1,50", as js-yaml 5.5.0 has it: neither YAML 1.1 nor 1.2 has a comma in a number.
# Seen: 150, and -1,5 is -15. Of 1,2,3 the first comma is taken away, and the number ends at the second one. 10,20,30 is
# 1020. With a point, as in 1.234,50, or a unit behind it, it is a text.
#
# Who it hurts: whoever keeps prices with a comma, versions or lists of numbers in YAML: a price is a hundred times as
# high, and of a list of ports there is one that nobody named.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" yamljs@0.3.0 js-yaml@5.5.0
cat > "$work/seen.mjs" << 'PROGRAM'
import { load } from "js-yaml";
import yamljs from "yamljs";

const texts = ["1,50", "-1,5", "1,2,3", "10,20,30", "1.234,50", "1,50 EUR"];
console.log([yamljs.parse, load].map((parse) => JSON.stringify(texts.map((text) => parse(`a: ${text}`).a))).join(" "));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "yamljs 0.3.0 and js-yaml 5.5.0: $seen"
[ "$seen" = '[150,-15,12,1020,"1.234,50","1,50 EUR"] ["1,50","-1,5","1,2,3","10,20,30","1.234,50","1,50 EUR"]' ]
