#!/usr/bin/env bash
# currency-formatter 1.5.9 (amounts in texts, for JavaScript): unformat() takes a point of the symbol as the decimal
# point. What format() wrote for 1234.50 soles of Peru is 0.1234, and what it wrote for dinars of Kuwait is nothing.
#
# Guess: 1234.5 again: both are told the same currency.
# Seen: "S/. 1,234.50" is 0.1234, and so is "B/. 1,234.50" of Panama. Of AED, BHD, KWD, TND and other currencies whose
# symbol has points, all is 0. Of the dong, which has no point in its symbol, "1.235 ₫" is 1.235. Euros and dollars are
# right.
#
# Who it hurts: whoever has a field that shows an amount and reads it again: the customer pays a ten thousandth, or
# nothing.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" currency-formatter@1.5.9
cat > "$work/seen.cjs" << 'PROGRAM'
const { format, unformat } = require("currency-formatter");

const back = (code) => `${code} ${unformat(format(1234.5, { code }), { code })}`;
console.log(["PEN", "PAB", "KWD", "AED", "TND", "VND", "EUR", "USD"].map(back).join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "currency-formatter 1.5.9, what it reads of its own texts of 1234.5: $seen"
[ "$seen" = "PEN 0.1234, PAB 0.1234, KWD 0, AED 0, TND 0, VND 1.235, EUR 1234.5, USD 1234.5" ]
