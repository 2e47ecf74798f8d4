#!/usr/bin/env bash
# orjson 3.13.0 (for Python): an integer that needs more than 64 bits becomes a float, and loses its last digits.
# Written again by orjson itself, it is another number.
#
# Guess: an int, as json has it, or an error, as pysimdjson has it; orjson refuses to write such an int.
# Seen: of 20000000000000000001 loads() makes the float 2e+19, which dumps() writes. json has all digits, pysimdjson
# 7.0.2 says NUMBER_ERROR. dumps() of the int is "Integer exceeds 64-bit range".
#
# Who it hurts: programs with account numbers, amounts in the smallest unit of a currency, or ids of 128 bits as JSON
# numbers. Two of them that differ at the end are equal.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check orjson==3.13.0 pysimdjson==7.0.2
cat > "$work/seen.py" << 'PYTHON'
import json, orjson, simdjson


def refused(function, argument):
    try:
        return function(argument)
    except (ValueError, TypeError):
        return "refused"


first, second = "20000000000000000001", "20000000000000000002"
print(orjson.loads(first), orjson.dumps(orjson.loads(first)).decode(), orjson.loads(first) == orjson.loads(second),
      json.loads(first), refused(simdjson.loads, first), refused(orjson.dumps, int(first)), sep=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "orjson 3.13.0 reads, writes, compares; json and simdjson read; orjson writes the int: $seen"
[ "$seen" = "2e+19, 2e+19, True, 20000000000000000001, refused, refused" ]
