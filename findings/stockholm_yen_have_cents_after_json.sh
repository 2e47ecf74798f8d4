#!/usr/bin/env bash
# stockholm 0.5.7 (money for Python): 1000 yen that come back from JSON have 100000 sub units, and before they had 1000.
# The two amounts are equal.
#
# Guess: 1000, and 1000 for Money(1000, "JPY") too, whose currency the library knows.
# Seen: of a currency that is given as text, and so of what was read from JSON, all have two decimals. Of a dinar of
# Kuwait there are 100 sub units then, and 1000 with currency.KWD. from_sub_units(1000, "JPY") is 10 yen.
#
# Who it hurts: whoever pays by an API that takes the smallest unit: a customer from Japan pays a hundred times what is
# on the bill, and one from Kuwait a tenth.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check stockholm==0.5.7
cat > "$work/seen.py" << 'PYTHON'
from stockholm import Money
from stockholm.currency import JPY, KWD

for money in (Money(1000, JPY), Money(1, KWD)):
    back = Money.from_json(money.json())
    print(back == money, money.sub_units, back.sub_units, end="; ")
print(Money.from_sub_units(1000, JPY), Money.from_sub_units(1000, "JPY"), sep=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "stockholm 0.5.7, whether equal, and sub units before and after JSON: $seen"
[ "$seen" = "True 1000 100000; True 1000 100; 1000 JPY, 10.00 JPY" ]
