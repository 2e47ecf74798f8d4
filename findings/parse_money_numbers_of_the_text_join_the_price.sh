#!/usr/bin/env bash
# parse-money 1.0.12 (for JavaScript): the digits of other numbers in the text are put before or after the price.
# "Invoice 12: $99.50" is 1299.50 dollars.
#
# Guess: 99.50, the number beside the sign, for it is there to extract money from a text. Or nothing.
# Seen: 1299.5. "2 items for $5" is 25 dollars, and "$5 for 2 items" is 52. "Room 3, 20.00 EUR" is 320. All digits,
# points and commas within 40 characters before the sign and after it are taken for one number. Text without digits
# around is left out, as its page says.
#
# Who it hurts: importers of mails, receipts or lines of orders: as soon as a line has a quantity, a date or a number of
# an invoice, the amount is a larger one, and there is no error.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" parse-money@1.0.12
cat > "$work/seen.cjs" << 'PROGRAM'
const parse = require("parse-money").default;

for (const text of ["Pay $99.50", "Invoice 12: $99.50", "2 items for $5", "$5 for 2 items", "Room 3, 20.00 EUR"]) {
  const { amount, currency } = parse(text);
  process.stdout.write(`${amount} ${currency}; `);
}
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "parse-money 1.0.12, two of 99.50, two of 5 and one of 20.00: $seen"
[ "$seen" = "99.5 USD; 1299.5 USD; 25 USD; 52 USD; 320 EUR; " ]
