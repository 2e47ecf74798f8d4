#!/usr/bin/env bash
# protobuf 7.36.2 (for Python): json_format reads true for a double or float field as 1, and false as 0. For an integer
# field both are a ParseError.
#
# Guess: true is no number, whatever the number's type.
# Seen: true for a double is 1.0, and false 0.0; for an int64 they are "Bool value True is not acceptable". In the other
# direction, 1 for a bool is a ParseError.
#
# Who it hurts: a service that takes amounts or readings as JSON: a sender that mixes up two fields is booked with one
# unit each time, and not told.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check protobuf==7.36.2
cat > "$work/seen.py" << 'PYTHON'
import json
from google.protobuf import json_format, wrappers_pb2


def read(kind, value):
    try:
        return json_format.Parse(json.dumps(value), kind()).value
    except json_format.ParseError:
        return "ParseError"


print(read(wrappers_pb2.DoubleValue, True), read(wrappers_pb2.FloatValue, False), read(wrappers_pb2.Int64Value, True),
      read(wrappers_pb2.BoolValue, 1))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "protobuf 7.36.2: true for a double, false for a float, true for an int64, 1 for a bool: $seen"
[ "$seen" = "1.0 0.0 ParseError ParseError" ]
