#!/usr/bin/env bash
# json-to-pretty-yaml 1.2.2 (JSON to YAML for JavaScript): texts are quoted, and names of fields never are. A field 0012
# comes back as 12, and one named #note is gone.
#
# Guess: the YAML gives the same data back: "0012" in quotes, and "#note", too, as other writers of YAML have it.
# Seen: with js-yaml 5.5.0 0012 is 12 and 1e3 is 1000. What is in #note moves up into the field around it, for the name
# is a comment. A field named "- a" makes a list, and one with a colon and a space is an error.
#
# Who it hurts: whoever keeps prices by article or settings by name: look-ups fail or find another article, and nothing
# fails before that.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" json-to-pretty-yaml@1.2.2 js-yaml@5.5.0
cat > "$work/seen.mjs" << 'PROGRAM'
import { load } from "js-yaml";
import pretty from "json-to-pretty-yaml";

const values = [{ "0012": "a" }, { "1e3": "a" }, { part: { "#note": ["a"] } }, { "- a": "b" }, { part: "0012" }];
console.log(values.map((value) => JSON.stringify(load(pretty.stringify(value)))).join(" "));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "json-to-pretty-yaml 1.2.2, fields 0012, 1e3, #note and - a, and a text 0012, read back: $seen"
[ "$seen" = '{"12":"a"} {"1000":"a"} {"part":["a"]} [{"a":"b"}] {"part":"0012"}' ]
