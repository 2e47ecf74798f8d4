#!/usr/bin/env bash
# protobuf 7.36.2 (for Python): json_format reads a bytes field whose Base64 is damaged, and leaves out what it does not
# know, or all that follows.
#
# Guess: a character that is none of Base64 is a ParseError, as a word in a number's place is.
# Seen: aGVs*bG8= is "hello", aGVsbG8=d29ybGQ= is "hello", too, and !!!! is no byte. Only a length that cannot be is an
# error. Base64 is decoded without validate=True, which skips unknown characters and stops at the padding.
#
# Who it hurts: a gateway from JSON to gRPC, or a reader of records with a bytes field: two values that were joined, or
# one that an editor or a transport damaged, is taken for a shorter one, and counts.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check protobuf==7.36.2
cat > "$work/seen.py" << 'PYTHON'
import json
from google.protobuf import json_format, wrappers_pb2


def read(text):
    try:
        return json_format.Parse(json.dumps(text), wrappers_pb2.BytesValue()).value
    except json_format.ParseError:
        return "ParseError"


print(*(f"{text} {read(text)}," for text in ("aGVsbG8=", "aGVs*bG8=", "aGVsbG8=d29ybGQ=", "!!!!", "aGVsb")))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "protobuf 7.36.2: $seen"
[ "$seen" = "aGVsbG8= b'hello', aGVs*bG8= b'hello', aGVsbG8=d29ybGQ= b'hello', !!!! b'', aGVsb ParseError," ]
