#!/usr/bin/env bash
# price-parser 0.5.1 (for Python) takes a point or comma before exactly three digits for one of thousands, also after a
# zero: 0.215 is 215.
#
# Guess: 0.215 is less than one, for no number is written with a zero before its thousands. 1.215 can be either.
# Seen: "0.215 EUR/kWh" is 215, "EUR 0,050" is 50 and "$0.005" is 5. With two or four digits, 0.25 and 0.2155, all is
# right, and so is 0.215 with decimal_separator=".".
#
# Who it hurts: importers of tariffs and price lists: prices per kilowatt hour, minute or piece have three digits after
# the point. In one list 0.2150 is right, and 0.215 is a thousand times as much.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check price-parser==0.5.1
cat > "$work/seen.py" << 'PYTHON'
from price_parser import Price

for text in ("0.215 EUR/kWh", "EUR 0,050", "$0.005", "0.25 EUR/kWh", "0.2155 EUR/kWh"):
    print(Price.fromstring(text).amount, end=" ")
print(Price.fromstring("0.215 EUR/kWh", decimal_separator=".").amount)
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "price-parser 0.5.1: $seen"
[ "$seen" = "215 50 5 0.25 0.2155 0.215" ]
