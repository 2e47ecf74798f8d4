#!/usr/bin/env bash
# ndjson 0.3.1 (for Python): a line separator in a text (U+2028, U+2029 or U+0085, which JSON allows as they are) comes
# out as a comma.
#
# Guess: loads() divides at line feeds, as the format says, or fails.
# Seen: {"a": "x", U+2028, "y"} on one line is {'a': 'x,y'}: the document is divided with str.splitlines() and joined
# with commas. json.loads of the line has the text as it was.
#
# Who it hurts: records with text that was pasted from office programs. Nothing fails, the record has another text, and
# a signature or a hash of it no longer fits.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check ndjson==0.3.1
cat > "$work/seen.py" << 'PYTHON'
import json, ndjson

for separator in "\u2028\u2029\u0085":
    line = '{"a": "x%sy"}\n' % separator
    print(ascii(json.loads(line)["a"]), ascii([record["a"] for record in ndjson.loads(line)]), end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "json and ndjson 0.3.1 read $seen"
[ "$seen" = "'x\u2028y' ['x,y']; 'x\u2029y' ['x,y']; 'x\x85y' ['x,y']; " ]
