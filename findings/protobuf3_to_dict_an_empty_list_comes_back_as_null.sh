#!/usr/bin/env bash
# protobuf3-to-dict 0.1.5 (protobuf messages as dictionaries for Python, here with protobuf 6.31.1): an empty list or
# object of a Struct is null after the way there and back.
#
# Guess: dict_to_protobuf() makes the message of which protobuf_to_dict() made the dictionary.
# Seen: {"tags": []} and {"options": {}} come back as {"tags": null} and {"options": null}, while 0 and false stay. In
# the dictionary the empty list is there; on the way back a message without fields is not set.
#
# Who it hurts: settings and labels sent as Struct: whoever goes through the list of what comes out has no list, and any
# message that tells something by being there, and empty, does not.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check protobuf3-to-dict==0.1.5 protobuf==6.31.1
cat > "$work/seen.py" << 'PYTHON'
from google.protobuf.json_format import MessageToJson
from google.protobuf.struct_pb2 import Struct
from protobuf_to_dict import dict_to_protobuf, protobuf_to_dict

for value in ({"tags": []}, {"options": {}}, {"price": 0}, {"paid": False}):
    message = Struct()
    message.update(value)
    print(MessageToJson(dict_to_protobuf(Struct, protobuf_to_dict(message)), indent=None), end=" ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "protobuf3-to-dict 0.1.5: $seen"
[ "$seen" = '{"tags": null} {"options": null} {"price": 0.0} {"paid": false} ' ]
