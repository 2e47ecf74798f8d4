#!/usr/bin/env bash
# fundamental-js 1.4.1 (loans and investments for JavaScript): a payment ahead that is to lower the instalments raises
# them. 100 of 12000 paid ahead in the eleventh of twelve months make 2020.81 of 1066.19.
#
# Guess: the last two of the twelve instalments are lower, some 1015 each. The documentation says that the term stays
# and that the lower instalment is found anew after each payment ahead.
# Seen: 2020.81. It divides what is left by the months that follow, without the one whose instalment is still paid. In
# the second month 100 ahead make 1156.53, and without interest 1090 of 1000. The loan ends a month early, and the
# result says that it takes twelve and saves no month.
#
# Who it hurts: whoever shows a borrower what a payment ahead does: it looks like a loss, and the plan does not fit the
# term it names.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" fundamental-js@1.4.1
cat > "$work/seen.mjs" << 'PROGRAM'
import { prepaymentImpact } from "fundamental-js";

const seen = [[0.12, 11], [0.12, 2], [0, 2]].map(([annualRate, month]) => {
  const prepayments = [{ month, amount: 100 }];
  const loan = { principal: 12000, annualRate, months: 12, prepayments, mode: "reduceEmi" };
  const impact = prepaymentImpact(loan);
  return `${impact.original.emi.toFixed(2)} ${impact.new.emi.toFixed(2)} ${impact.new.payoffMonth}`;
});
console.log(seen.join(", "));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "fundamental-js 1.4.1, instalment, with 100 ahead in month 11, 2, and 2 without interest, and months: $seen"
[ "$seen" = "1066.19 2020.81 12, 1066.19 1156.53 12, 1000.00 1090.00 12" ]
