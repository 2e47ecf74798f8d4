#!/usr/bin/env bash
# money-math 2.6.3 (amounts of any size for JavaScript): a product, a quotient or a share that is negative is up to two
# cents too high. 19.99 times 0.19 is 3.80, and -19.99 times 0.19 is -3.78.
#
# Guess: -3.80, the same with a sign: -3.7981 is nearest to -3.80. Where there is a half, one cent to either side.
# Seen: -3.78. It cuts the product off, to -3.79, and adds a cent for the digits 81 that are cut. -10.50 times 0.07 is
# -0.72, for -0.735. -2.00 divided by 3.00 is -0.65, and 2.00 by 3.00 is 0.67. 19 per cent of -19.99 are -3.79.
#
# Who it hurts: credit notes with a tax or a discount: the invoice and its reversal leave two cents, always to the same
# side, in a library that is there to keep amounts exact.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" money-math@2.6.3
cat > "$work/seen.cjs" << 'PROGRAM'
const money = require("money-math");

const both = (calculate, a, b) => `${calculate(a, b)} ${calculate("-" + a, b)}`;
console.log([
  both(money.mul, "19.99", "0.19"),
  both(money.mul, "10.50", "0.07"),
  both(money.div, "2.00", "3.00"),
  both(money.percent, "19.99", "19.00"),
].join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "money-math 2.6.3, 19.99 * 0.19, 10.50 * 0.07, 2.00 / 3.00 and 19 % of 19.99, plain and negative: $seen"
[ "$seen" = "3.80 -3.78, 0.74 -0.72, 0.67 -0.65, 3.80 -3.79" ]
