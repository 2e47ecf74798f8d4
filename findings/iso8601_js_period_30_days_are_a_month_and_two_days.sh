#!/usr/bin/env bash
# iso8601-js-period 0.2.1 (ISO 8601 durations for JavaScript): with the overflow handed to the larger units, 30 days are
# a month and two days, and it has itself that a month is 30 days.
#
# Guess: P30D is a month, for parseToTotalSeconds() has 2592000 for both P30D and P1M, or four weeks and two days.
# Seen: 1 month 2 days. 30 days become four weeks and two days, and four weeks become a month. P40D, 40 days, is 1 month
# 1 week 5 days, which are 42. 364 days are 1 year 1 month, and by its own count 390.
#
# Who it hurts: terms of payment and contracts that are shown to people: each month has 28 days on the way up and 30 on
# the way down.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" iso8601-js-period@0.2.1
cat > "$work/seen.cjs" << 'PROGRAM'
const { Period } = require("iso8601-js-period");

const days = (period) => Period.parseToTotalSeconds(period) / 86400;
console.log(["P30D", "P40D", "P364D"].map((period) => {
  const [years, months, weeks, rest] = Period.parse(period, true);
  return `${Period.parseToString(period, null, null, true)} = ${days(`P${years}Y${months}M${weeks}W${rest}D`)}`;
}).join(", "), days("P30D"), days("P1M"));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "iso8601-js-period 0.2.1, 30, 40 and 364 days, and days of P30D and P1M: $seen"
[ "$seen" = "1 month 2 days = 32, 1 month 1 week 5 days = 42, 1 year 1 month = 390 30 30" ]
