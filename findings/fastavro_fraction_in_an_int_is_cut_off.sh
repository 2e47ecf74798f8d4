#!/usr/bin/env bash
# fastavro 1.13.1 (for Python) writes a fraction into a field of type int or long, cut off. Apache's avro 1.12.1 refuses
# it. A text is refused by both.
#
# Guess: an error, as the specification has no promotion from a double to an int.
# Seen: {"cents": 1.9} comes back as 1, and -0.5 as 0. {"cents": "5"} is a TypeError.
#
# Who it hurts: whoever puts amounts that were calculated as floats, such as 19.99 * 100, into a field of whole cents:
# 1998.9999999999998 is 1998, and nothing says that a cent is missing.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check fastavro==1.13.1 avro==1.12.1
cat > "$work/seen.py" << 'PYTHON'
import io, json
import avro.errors, avro.io, avro.schema, fastavro

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "cents", "type": "long"}]}
for cents in (19.99 * 100, -0.5, "5"):
    file = io.BytesIO()
    try:
        fastavro.schemaless_writer(file, SCHEMA, {"cents": cents})
        file.seek(0)
        print(fastavro.schemaless_reader(file, SCHEMA)["cents"], end=" ")
    except TypeError:
        print("TypeError", end=" ")
    try:
        schema = avro.schema.parse(json.dumps(SCHEMA))
        avro.io.DatumWriter(schema).write({"cents": cents}, avro.io.BinaryEncoder(io.BytesIO()))
        print("written", end="; ")
    except avro.errors.AvroTypeException:
        print("refused", end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "fastavro 1.13.1 and avro 1.12.1: $seen"
[ "$seen" = "1998 refused; 0 refused; TypeError refused; " ]
