#!/usr/bin/env bash
# @agrora/decimal 0.2.1 (decimals of any length for JavaScript): where the larger number of a difference has fewer
# decimals, its missing ones count as if they were subtracted from nothing. 10 less 0.01 is 10.99.
#
# Guess: 9.99, as for 10.00 less 0.01.
# Seen: 10.99. 100 less 0.5 is 100.5, which is more than before, and 1 less 0.75 is 0.95. A sum of numbers with two
# signs is a difference, too: 0.25 and -0.5 are -0.45. Where both have as many decimals, it is right.
#
# Who it hurts: balances and discounts: a whole amount less a fee is too large by up to one, in a library that is there
# to be exact.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @agrora/decimal@0.2.1
cat > "$work/seen.cjs" << 'PROGRAM'
const { default: Decimal } = require("@agrora/decimal");

const less = [["10", "0.01"], ["10.00", "0.01"], ["100", "0.5"], ["1", "0.75"], ["2.5", "0.75"]];
const seen = [...less.map(([a, b]) => Decimal.from(a).subtract(b)), Decimal.from("0.25").add("-0.5")];
console.log(seen.join(" "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "@agrora/decimal 0.2.1, 10 - 0.01, 10.00 - 0.01, 100 - 0.5, 1 - 0.75, 2.5 - 0.75 and 0.25 + -0.5: $seen"
[ "$seen" = "10.99 9.99 100.5 0.95 0.45 -0.45" ]
