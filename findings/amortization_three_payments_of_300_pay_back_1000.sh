#!/usr/bin/env bash
# amortization 3.0.1 (schedules of loans for Python): the number of payments that a loan needs is rounded. 1000 without
# interest take three payments of 300.
#
# Guess: four, the last one of 100: the documentation says that it is the number of periods needed for an amount.
# Seen: three, after which 100 are owed. At 12 per cent a year it is three, too. A payment of 2500 pays 1000 back in no
# period at all. With 200 it is five, which is right.
#
# Who it hurts: whoever tells a customer how long a rate runs, or makes that many standing orders: up to half a payment
# stays open, and nobody asks for it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check amortization==3.0.1
cat > "$work/seen.py" << 'PYTHON'
from amortization.period import calculate_amortization_period

for interest, payment in ((0, 300), (0.12, 300), (0, 2500), (0, 200)):
    count = calculate_amortization_period(1000, interest, payment)
    owed = 1000
    for number in range(count):
        owed = owed * (1 + interest / 12) - payment
    print(f"{count} {owed:.2f}", end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "amortization 3.0.1, payments for 1000 of 300, of 300 at 12 %, of 2500 and of 200, and what is owed then: $seen"
[ "$seen" = "3 100.00; 3 121.27; 0 1000.00; 5 0.00; " ]
