#!/usr/bin/env bash
# PyYAML 6.0.4 (for Python) writes a text of digits and an e, such as 12e4, without quotes. js-yaml 5.5.0 and yaml 2.9.1
# (for JavaScript) read the number 120000.
#
# Guess: a text that a reader takes for a number is quoted, as "1_000", ".5" and "12:30" are.
# Seen: safe_dump({"id": "12e4"}) is id: 12e4, which PyYAML itself reads as a text, by YAML 1.1. By YAML 1.2 it is a
# number. The text 0o17 is 15.
#
# Who it hurts: whoever hands ids, short hashes of commits or article numbers from Python to programs in other
# languages. Of hashes of seven digits one in fifty is digits and an e: 1234e56 becomes another number, and 1e99999
# infinity.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" js-yaml@5.5.0 yaml@2.9.1
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check PyYAML==6.0.4
cat > "$work/seen.mjs" << 'PROGRAM'
import { readFileSync } from "node:fs";
import * as js from "js-yaml";
import { parse } from "yaml";

const text = readFileSync(process.argv[2], "utf8");
console.log(...Object.values(js.load(text)), ...Object.values(parse(text)));
PROGRAM
"$work/venv/bin/python" -c 'import yaml; print(yaml.safe_dump({"a": "12e4", "b": "0o17"}), end="")' > "$work/text"
seen="$(paste --serial --delimiters ',' "$work/text"): $(node "$work/seen.mjs" "$work/text")"
echo "PyYAML 6.0.4 writes, and js-yaml 5.5.0 and yaml 2.9.1 read $seen"
[ "$seen" = "a: 12e4,b: 0o17: 120000 15 120000 15" ]
