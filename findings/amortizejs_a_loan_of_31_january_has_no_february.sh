#!/usr/bin/env bash
# amortizejs 1.0.3 (plans of loans for JavaScript): with a start on the 31st the month of February has no payment, and
# all later ones are on the 3rd.
#
# Guess: 31 January, 28 February, 31 March and 30 April: a payment each month, as the plan is monthly.
# Seen: 31 January, 3 March, 3 April and 3 May. Each date is made of the last one, and never comes back to the end of
# the month. From 31 August on there are payments on 31 August, 1 October, 1 November and 1 December.
#
# Who it hurts: lenders: a month without a payment, and every later one is days late, while the interest of the plan is
# that of whole months.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" amortizejs@1.0.3
cat > "$work/seen.cjs" << 'PROGRAM'
const { Calculator } = require("amortizejs");

console.log(["2026-01-31", "2026-08-31", "2026-01-28"].map((day) => {
  const startDate = new Date(`${day}T12:00:00Z`);
  const { schedule } = Calculator.calculate({ method: "mortgage", apr: 5, balance: 1000, loanTerm: 4, startDate });
  return schedule.map(({ date }) => date.toISOString().slice(5, 10)).join(" ");
}).join("; "));
PROGRAM
seen=$(cd "$work" && TZ=UTC node seen.cjs)
echo "amortizejs 1.0.3, payments from 31 January, 31 August and 28 January 2026 on: $seen"
[ "$seen" = "01-31 03-03 04-03 05-03; 08-31 10-01 11-01 12-01; 01-28 02-28 03-28 04-28" ]
