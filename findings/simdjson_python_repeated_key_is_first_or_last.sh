#!/usr/bin/env bash
# pysimdjson 7.0.2 (for Python): of a key that an object has twice, simdjson.loads() has the last value, and
# Parser().parse() the first. as_dict() of what it has parsed has the last again.
#
# Guess: both are views of one document, and agree: the last, as Python's json has it.
# Seen: of {"amount":1,"amount":2} loads() has 2, parse()["amount"] and at_pointer("/amount") have 1, and as_dict() has
# 2.
#
# Who it hurts: a program that checks a record by looking up a field, and hands on the dict: what was checked is another
# value than what is booked.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check pysimdjson==7.0.2
cat > "$work/seen.py" << 'PYTHON'
import simdjson

TEXT = b'{"amount":1,"amount":2}'
parsed = simdjson.Parser().parse(TEXT)
print(simdjson.loads(TEXT)["amount"], parsed["amount"], parsed.at_pointer("/amount"), parsed.as_dict()["amount"])
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "pysimdjson 7.0.2: loads, parse, at_pointer, as_dict: $seen"
[ "$seen" = "2 1 1 2" ]
