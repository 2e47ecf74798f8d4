#!/usr/bin/env bash
# loanjs 1.1.2 (schedules of loans for JavaScript): with payments in advance (annuityDue) the first, on the day of the
# loan, bears a month of interest. Of a loan of 10000 the lines pay back 9898.01, and then nothing remains.
#
# Guess: no interest in the first of three payments of 3366.56, for no time has passed. Then the capital of the three is
# 10000, and their sum the 10099.68 that are paid.
# Seen: 100 of interest in the first line. The capital adds up to 9898.01, and the sum of the loan is 10201.67, by which
# no payments go: the amount of each is right. In arrears (annuity) all fits, up to cents.
#
# Who it hurts: whoever books from the schedule: 101.99 of the loan stay open in the books after the last payment, and
# the contract states twice the interest that is paid.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" loanjs@1.1.2
cat > "$work/seen.cjs" << 'PROGRAM'
const { Loan } = require("loanjs");

const seen = ["annuityDue", "annuity"].map((type) => {
  const loan = new Loan(10000, 3, 12, type);
  const total = (part) => loan.installments.reduce((sum, line) => sum + line[part], 0).toFixed(2);
  const [first, last] = [loan.installments[0], loan.installments[2]];
  return `${type} ${first.interest} ${total("capital")} ${total("installment")} ${loan.sum} ${last.remain}`;
});
console.log(seen.join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "loanjs 1.1.2, first interest, capital and payments of the lines, sum of the loan, and what remains: $seen"
[ "$seen" = "annuityDue 100 9898.01 10099.68 10201.67 0, annuity 100 9999.99 10200.66 10200.67 0" ]
