#!/usr/bin/env bash
# duration-fns 3.0.2 (durations for JavaScript): 40 days from 31 January are normalized to two months less 19 days.
#
# Guess: a month and twelve days, as 28 days and 24 hours from 1 February are a month and a day in the documentation:
# 28 February is a month later, and 12 March twelve days after that.
# Seen: two months and -19 days. The text is P2M-19D, which is no ISO 8601 duration. 30 days from 31 March are a month
# and -1 day, and that added to 31 March is 29 April, a day before the 30 days are over.
#
# Who it hurts: whoever writes or shows terms of contracts: a positive duration gets a negative part, other programs
# refuse the text, and the end of a term moves.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" duration-fns@3.0.2
cat > "$work/seen.mjs" << 'PROGRAM'
import { apply, normalize, toString } from "duration-fns";

const day = (date) => date.toISOString().slice(0, 10);
const seen = [[40, "2026-01-31"], [60, "2026-12-31"], [30, "2026-03-31"]].map(([days, start]) => {
  const normalized = normalize({ days }, start);
  return `${toString(normalized)} ${day(apply(start, { days }))} ${day(apply(start, normalized))}`;
});
console.log(seen.join(", "));
PROGRAM
seen=$(TZ=UTC node "$work/seen.mjs")
echo "duration-fns 3.0.2, 40 days from 31 January, 60 from 31 December, 30 from 31 March, and where they end: $seen"
[ "$seen" = "P2M-19D 2026-03-12 2026-03-12, P3M-30D 2027-03-01 2027-03-01, P1M-1D 2026-04-30 2026-04-29" ]
