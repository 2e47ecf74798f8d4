#!/usr/bin/env bash
# protobuf 7.36.2 (for Python): json_format reads numbers that are Python's and not JSON's: the text 1_000 in an integer
# field is 1000, +5 is 5, and the duration 1_0s is ten seconds.
#
# Guess: a number may stand as a text, but is then one of JSON: 1_000 is a ParseError, as " 5" and 1,000 are.
# Seen: "1_000" is 1000 for an int64, "1_0.5" is 10.5 for a double, "+5" is 5, "1_0s" is a Duration of 10 s. int() and
# float() read them.
#
# Who it hurts: a gateway from JSON to gRPC that validates by reading. It takes what the services behind it in other
# languages refuse, and a typing error such as 1_5 for 1.5 counts ten times.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check protobuf==7.36.2
cat > "$work/seen.py" << 'PYTHON'
import json
from google.protobuf import duration_pb2, json_format, wrappers_pb2


def read(kind, text):
    try:
        message = json_format.Parse(json.dumps(text), kind())
    except json_format.ParseError:
        return "ParseError"
    return message.seconds if kind is duration_pb2.Duration else message.value


INTEGER, DOUBLE, DURATION = wrappers_pb2.Int64Value, wrappers_pb2.DoubleValue, duration_pb2.Duration
for kind, text in ((INTEGER, "1_000"), (INTEGER, "+5"), (DOUBLE, "1_0.5"), (DURATION, "1_0s"), (INTEGER, "1,000")):
    print(f"{text} {read(kind, text)}", end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "protobuf 7.36.2: $seen"
[ "$seen" = "1_000 1000; +5 5; 1_0.5 10.5; 1_0s 10; 1,000 ParseError; " ]
