#!/usr/bin/env bash
# fiscal 1.0.0 (fiscal years and quarters for JavaScript): a fiscal year that begins in January ends on the last day of
# the year before, a millisecond before it begins.
#
# Guess: 2026 is 1 January to 31 December 2026. The year that begins in April is right: 1 April 2026 to 31 March 2027.
# Seen: the year of 15 May 2026 begins on 2026-01-01 and ends on 2025-12-31 at 23:59:59.999. Its second quarter,
# 1 April to 30 June, is right, and so lies after its end.
#
# Who it hurts: whoever lets customers say when their year begins: for those with the calendar's year nothing lies
# between start and end. Their report of the year is empty, and a subscription to the end of the year is over.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" fiscal@1.0.0
cat > "$work/seen.cjs" << 'PROGRAM'
const Fiscal = require("fiscal");

const days = (range) => [range.startDate, range.endDate].map((date) => date.toISOString().slice(0, 10)).join(" to ");
for (const month of [0, 3]) {
  const { fiscalYear, quarter } = new Fiscal(month).getFiscalInfoForDate(new Date(2026, 4, 15));
  process.stdout.write(`${days(fiscalYear)}, ${quarter.string} ${days(quarter)}; `);
}
PROGRAM
seen=$(cd "$work" && TZ=UTC node seen.cjs)
echo "fiscal 1.0.0, year and quarter of 15 May 2026 where years begin in January, and in April: $seen"
[ "$seen" = "2026-01-01 to 2025-12-31, Q2 2026-04-01 to 2026-06-30; \
2026-04-01 to 2027-03-31, Q1 2026-04-01 to 2026-06-30; " ]
