#!/usr/bin/env bash
# prices 1.1.1 (prices with tax for Python, of Saleor's makers): a percentage off takes the same amount off net and
# gross. 50 per cent off 100.00 net and 119.00 gross leave a tax of 19.00.
#
# Guess: 50.00 net and 59.50 gross, tax 9.50: the rate stays at 19 per cent, and half of the price is half of each.
# Seen: 40.50 and 59.50, and with from_gross=False 50.00 and 69.00. The tax is 19.00 in both, 47 and 38 per cent of the
# net price. With from_gross=False and 100 per cent off, 0.00 net and 19.00 gross are left to pay.
#
# Who it hurts: shops and billing with discounts: too much tax is paid, or the customer pays the tax of what is free.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check prices==1.1.1
cat > "$work/seen.py" << 'PYTHON'
from prices import Money, TaxedMoney, percentage_discount

price = TaxedMoney(net=Money("100.00", "EUR"), gross=Money("119.00", "EUR"))
for percentage, from_gross in ((50, True), (50, False), (100, False)):
    left = percentage_discount(price, percentage, from_gross=from_gross)
    print(left.net.amount, left.gross.amount, left.tax.amount, end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "prices 1.1.1, net, gross and tax of 100.00 and 119.00 less 50 % of gross, 50 % of net and 100 % of net: $seen"
[ "$seen" = "40.50 59.50 19.00; 50.00 69.00 19.00; 0.00 19.00 19.00; " ]
