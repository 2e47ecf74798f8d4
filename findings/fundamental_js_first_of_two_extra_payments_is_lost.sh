#!/usr/bin/env bash
# fundamental-js 1.4.1 (loans and investments for JavaScript): of two extra payments of one month only the last in the
# list counts.
#
# Guess: 600 and 1000 in the sixth month are 1600, as one entry of 1600 is. The documentation asks for a list of months
# and amounts, and nothing says that a month may be there once.
# Seen: 1000. The other way round it is 600. The monthly extra payment is added to the list, and not replaced.
#
# Who it hurts: whoever passes payments on as they came in: interest is charged for money that was paid, and the loan
# takes longer.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" fundamental-js@1.4.1
cat > "$work/seen.mjs" << 'PROGRAM'
import { amortizationSchedule } from "fundamental-js";

const seen = [[600, 1000], [1000, 600], [1600]].map((amounts) => {
  const extraPayments = amounts.map((amount) => ({ month: 6, amount }));
  const plan = amortizationSchedule({ principal: 12000, annualRate: 0.12, months: 12, extraPayments });
  return `${plan.schedule[5].extraPayment} ${plan.totalInterest.toFixed(2)}`;
});
console.log(seen.join(", "));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "fundamental-js 1.4.1, extra payment of month 6 and interest for 600 and 1000, 1000 and 600, and 1600: $seen"
[ "$seen" = "1000 732.71, 600 757.31, 1600 702.05" ]
