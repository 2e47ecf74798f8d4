#!/usr/bin/env bash
# swiftmessageparser 1.2.1 and mt940js 1.3.5 (bank statements of MT940 for JavaScript): amounts are rounded to two
# decimals, whatever the currency. KWD 1,234 is 1.23, and KWD 0,004 is nothing.
#
# Guess: 1.234 and 0.004: MT940 has as many decimals as the currency, and dinars of Kuwait, Bahrain, Jordan and Tunisia
# have three. swiftmessageparser uses BigNumber for its amounts.
# Seen: a statement of two payments of 1,234 opens at 0, has 1.23 twice and closes at 2.47. mt940js checks the sum, and
# fails then; with one payment it does not.
#
# Who it hurts: whoever books payments in such a currency: amounts fit neither the bill nor the balance.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" swiftmessageparser@1.2.1 mt940js@1.3.5
cat > "$work/seen.cjs" << 'PROGRAM'
const { Parser } = require("mt940js");
const { parse } = require("swiftmessageparser");

const statement = (amounts, close) => [
  ":20:1", ":25:KW00/1", ":28C:1/1", ":60F:C261101KWD0,000",
  ...amounts.map((amount) => `:61:2611021102C${amount}NTRFNONREF`),
  `:62F:C261105KWD${close}`, "-", "",
].join("\r\n");
const show = ([one]) => process.stdout.write(`${one.transactions.map((line) => line.amount)} ${one.closingBalance}; `);

show(parse({ type: "mt940", data: statement(["1,234", "1,234"], "2,468") }));
show(parse({ type: "mt940", data: statement(["0,004"], "0,004") }));
show(new Parser().parse(statement(["1,234"], "1,234")));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "swiftmessageparser 1.2.1 and mt940js 1.3.5: $seen"
[ "$seen" = "1.23,1.23 2.47; 0 0; 1.23 1.23; " ]
