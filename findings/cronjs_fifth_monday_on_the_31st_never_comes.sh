#!/usr/bin/env bash
# @datasert/cronjs-matcher 1.4.0 (cron expressions with #, L and W for JavaScript): the fifth Monday of a month never
# comes when it is the 31st. MON#5 leaves out 31 August 2026.
#
# Guess: 30 March, 29 June, 31 August and 30 November, which are the fifth Mondays of 2026.
# Seen: three of them, without 31 August. FRI#5 leaves out 31 July, and SAT#5 31 January and 31 October. In 2026 seven
# fifth weekdays are on a 31st, and none of them comes, whereas 31 and L both have the day.
#
# Who it hurts: whoever bills or reports on the fifth weekday, or does something else in months that have one: a run is
# missing, about one in four, and the others come as expected.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @datasert/cronjs-matcher@1.4.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { getFutureMatches } = require("@datasert/cronjs-matcher");

const days = (day) =>
  getFutureMatches(`0 10 ${day}`, {
    startAt: "2026-01-01T00:00:00Z",
    endAt: "2027-01-01T00:00:00Z",
    matchCount: 99,
    timezone: "UTC",
  }).map((date) => date.slice(5, 10));
const fifths = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"].flatMap((day) => days(`? * ${day}#5`));
console.log([
  days("? * MON#5").join(" "),
  fifths.filter((day) => day.endsWith("31")).length,
  days("31 * ?").length,
].join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "cronjs-matcher 1.4.0, 2026: fifth Mondays, fifth weekdays on a 31st, runs on the 31st: $seen"
[ "$seen" = "03-30 06-29 11-30; 0; 7" ]
