#!/usr/bin/env bash
# pamqp 4.0.1 (AMQP 0.9.1 for Python, which aio-pika and aiormq use): a float in the headers of a message loses half of
# its digits. 0.1 arrives as 0.10000000149011612.
#
# Guess: 0.1: Python's floats have 64 bits, AMQP has a type of 64 bits for them ("d"), and pamqp reads it.
# Seen: 19.99 is 19.989999771118164, and 1796040000.5, a time with half a second, is 1796040064. It writes 32 bits, the
# type "f". py-amqp 5.4.2, which kombu uses, writes the same headers with 64 bits, and they come back as they are.
#
# Who it hurts: prices, rates and times in headers: 16777217.0 is 16777216, times are off by up to a minute, and a
# comparison with what was sent fails.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check pamqp==4.0.1 amqp==5.4.2
cat > "$work/seen.py" << 'PYTHON'
from amqp.serialization import dumps, loads
from pamqp import decode, encode

for value in (0.1, 19.99, 1796040000.5, 16777217.0, 0.5):
    _, table = decode.field_table(encode.field_table({"k": value}))
    (other,), _ = loads("F", dumps("F", [{"k": value}]), 0)
    print(table["k"], other["k"] == value, end=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "pamqp 4.0.1, 0.1, 19.99, 1796040000.5, 16777217.0 and 0.5, and if they are the same with py-amqp 5.4.2: $seen"
[ "$seen" = "0.10000000149011612 True, 19.989999771118164 True, 1796040064.0 True, 16777216.0 True, 0.5 True, " ]
