#!/usr/bin/env bash
# yamljs 0.3.0 (YAML 1.2 for JavaScript): digits that begin with a zero are octal, up to the first one that is not. The
# postcode 01099 is 8, and August, 08, is 0.
#
# Guess: 1099 and 8, as js-yaml 5.5.0 has it and as YAML 1.2 says, or the texts, as YAML 1.1 does with an 8 or 9.
# Seen: 8 and 0. 0129 is 10. 0o14, which is how YAML 1.2 writes octal numbers, is 0 instead of 12. With a point, as in
# 08.5, it is right.
#
# Who it hurts: whoever has months, hours, postcodes or numbers of accounts in YAML: two months of the year are none,
# and different codes are one.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" yamljs@0.3.0 js-yaml@5.5.0
cat > "$work/seen.mjs" << 'PROGRAM'
import { load } from "js-yaml";
import yamljs from "yamljs";

const texts = ["01099", "08", "09", "0129", "0o14", "08.5"];
console.log([yamljs.parse, load].map((parse) => texts.map((text) => parse(`a: ${text}`).a).join(" ")).join(", "));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "yamljs 0.3.0 and js-yaml 5.5.0, 01099, 08, 09, 0129, 0o14 and 08.5: $seen"
[ "$seen" = "8 0 0 10 0 8.5, 1099 8 9 129 12 8.5" ]
