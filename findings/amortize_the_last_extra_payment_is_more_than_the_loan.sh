#!/usr/bin/env bash
# amortize 1.1.0 (loans for JavaScript): with an extra payment each month (principalPayment) more is paid than was
# borrowed. The balance ends below zero by a whole extra payment.
#
# Guess: the last payment is what is left. So it is without extra payments, where the balance ends at 0.
# Seen: of 1200.00 at 6 per cent with 50.00 more each month the principal that is paid is 1250.00, and the balance is
# -50.00. Of 1000.00 without interest in ten months, with 150.00 more each month, all is paid after four: it has a fifth
# payment of 150.00, and counts 5 months saved instead of 6.
#
# Who it hurts: whoever shows customers what paying early saves them, or collects by it: they pay once too often.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" amortize@1.1.0
cat > "$work/seen.cjs" << 'PROGRAM'
const amortize = require("amortize");

for (const [amount, rate, months, principalPayment] of [[1200, 6, 12, 0], [1200, 6, 12, 50], [1000, 0, 10, 150]]) {
  const loan = amortize({ amount, rate, totalTerm: months, amortizeTerm: months, principalPayment });
  process.stdout.write(`${loan.principalRound} ${loan.balance.toFixed(2)} ${loan.termsSaved}; `);
}
PROGRAM
seen=$(cd "$work" && node seen.cjs)
seen=${seen//-0.00/0.00}
echo "amortize 1.1.0, paid of 1200.00 without and with 50.00 more, and of 1000.00; balance; months saved: $seen"
[ "$seen" = "1200.00 0.00 0; 1250.00 -50.00 3; 1150.00 -150.00 5; " ]
