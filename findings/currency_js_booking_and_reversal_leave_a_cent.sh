#!/usr/bin/env bash
# currency.js 2.0.4: half a cent is rounded up, also below zero. 1.005 is 1.01, and -1.005 is -1.00. big.js 7.0.1 and
# decimal.js 10.6.0 round both alike.
#
# Guess: a half goes away from zero or to the even neighbour, so that an amount and its negative cancel.
# Seen: currency(1.005).add(-1.005) is 0.01. 10.01 divided by 2 is 5.01, and -10.01 divided by 2 is -5.00.
#
# Who it hurts: invoices with credit notes: a line of 10.01 that is halved and its correction leave a cent in the
# account, for each pair, and always to the same side.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" currency.js@2.0.4 big.js@7.0.1 decimal.js@10.6.0
cat > "$work/seen.mjs" << 'PROGRAM'
import Big from "big.js";
import currency from "currency.js";
import { Decimal } from "decimal.js";

console.log(currency(1.005).value, currency(-1.005).value, currency(1.005).add(-1.005).value,
  currency(10.01).divide(2).value, currency(-10.01).divide(2).value,
  ...["1.005", "-1.005"].map((text) => `${new Big(text).toFixed(2)} ${new Decimal(text).toFixed(2)}`));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "currency.js 2.0.4, big.js 7.0.1 and decimal.js 10.6.0: $seen"
[ "$seen" = "1.01 -1 0.01 5.01 -5 1.01 1.01 -1.01 -1.01" ]
