#!/usr/bin/env bash
# date-duration 2.0.0 (ISO 8601 durations for JavaScript): a sum has its parts in the order in which they came, and what
# then stands after a smaller part is lost when the text is read. PT45M and PT1H are PT45M1H, which is 45 minutes.
#
# Guess: PT1H45M, or any text that the library reads as what it wrote.
# Seen: PT45M1H. The sum itself adds an hour and 45 minutes to a date; the one that is made from its text adds 45
# minutes, without an error. P1M and P1Y are P1M1Y, and read a month. PT1H and PT45M are right.
#
# Who it hurts: whoever adds up runs or terms of a contract and keeps the text: the longest part is the one that is
# lost, and only where a shorter one came first.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" date-duration@2.0.0
cat > "$work/seen.mjs" << 'PROGRAM'
import Duration from "date-duration";

const start = new Date("2026-02-02T00:00:00Z");
const end = (duration) => duration.addTo(start).toISOString().slice(0, 16);
const seen = [["PT45M", "PT1H"], ["P1M", "P1Y"], ["PT1H", "PT45M"]].map(([a, b]) => {
  const sum = Duration(a).add(Duration(b));
  return `${sum} ${end(sum)} ${end(Duration(sum.toString()))}`;
});
console.log(seen.join("; "));
PROGRAM
seen=$(TZ=UTC node "$work/seen.mjs")
echo "date-duration 2.0.0, sums and what they and their texts make of 2 February: $seen"
[ "$seen" = "PT45M1H 2026-02-02T01:45 2026-02-02T00:45; P1M1Y 2027-03-02T00:00 2026-03-02T00:00; \
PT1H45M 2026-02-02T01:45 2026-02-02T01:45" ]
