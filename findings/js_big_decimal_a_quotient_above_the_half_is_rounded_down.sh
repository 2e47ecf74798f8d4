#!/usr/bin/env bash
# js-big-decimal 2.2.0 (decimals of any length for JavaScript): divide() cuts a quotient off and rounds what is left.
# 10000.01 / 80000, which is 0.125000125, is 0.12 with two digits.
#
# Guess: 0.13. The default is to round a half to the even digit, and this is more than a half.
# Seen: 0.12. round() of a longer quotient is 0.13. With CEILING 10000 / 9999.99 is 1.00, less than it is, and
# 1 / 100000 is 0.00, where 45 / 4 without digits is 12 in the documentation.
#
# Who it hurts: whoever divides amounts, rates or fees and rounds in favour of one side: the result is a cent on the
# other side, in a library that is there to keep amounts exact.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" js-big-decimal@2.2.0
cat > "$work/seen.cjs" << 'PROGRAM'
const decimal = require("js-big-decimal").default ?? require("js-big-decimal");

const { CEILING, HALF_EVEN } = decimal.RoundingModes;
const both = (a, b, mode) => `${decimal.divide(a, b, 2, mode)} ${decimal.round(decimal.divide(a, b, 20), 2, mode)}`;
console.log([
  both("10000.01", "80000", HALF_EVEN),
  both("10000", "9999.99", CEILING),
  both("1", "100000", CEILING),
].join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "js-big-decimal 2.2.0, 10000.01 / 80000, and 10000 / 9999.99 and 1 / 100000 upwards, in one and two steps: $seen"
[ "$seen" = "0.12 0.13, 1.00 1.01, 0.00 0.01" ]
