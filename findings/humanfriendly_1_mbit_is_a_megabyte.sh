#!/usr/bin/env bash
# humanfriendly 10.0 (for Python): of a size only the first letter of the unit counts. "1 Mbit" is a megabyte, eight
# times what it is, and "3 minutes" are three megabytes.
#
# Guess: an error, as "1 month" is one as a span of time, or 125000 bytes.
# Seen: 1000000 and 3000000. "8 bits" are 8 bytes, and "1 Gib" is 1073741824 as "1 GiB" is. "1 xbit" is an error.
#
# Who it hurts: whoever reads limits and rates from settings: one that is given in bits, as lines and providers have
# it, is eight times too large, and a size that is mixed up with a time is taken.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check humanfriendly==10.0
cat > "$work/seen.py" << 'PYTHON'
from humanfriendly import InvalidSize, InvalidTimespan, parse_size, parse_timespan

print(*(parse_size(text) for text in ("1 Mbit", "3 minutes", "8 bits", "1 Gib", "1 GiB")), end=" ")
try:
    parse_timespan("1 month")
except InvalidTimespan:
    print("error", end=" ")
try:
    parse_size("1 xbit")
except InvalidSize:
    print("error")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "humanfriendly 10.0: $seen"
[ "$seen" = "1000000 3000000 8 1073741824 1073741824 error error" ]
