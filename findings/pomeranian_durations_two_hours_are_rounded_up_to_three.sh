#!/usr/bin/env bash
# pomeranian-durations 1.11.4 (ISO 8601 durations for JavaScript): what is whole is rounded up to the next. ceilHours()
# of two hours is three, and ceilMinutes() of two minutes is three.
#
# Guess: PT2H, as Math.ceil(2) is 2. The README has only fractions, such as PT1.1H, which becomes PT2H.
# Seen: PT3H. No time is an hour, and of 59 minutes ceilMinutes() makes 60. floorHours() of two hours is two hours, and
# ceil() with a step of 15 minutes makes 45 of 30.
#
# Who it hurts: whoever bills by the begun hour or minute: who used exactly two hours pays three, and who used none pays
# one.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" pomeranian-durations@1.11.4
cat > "$work/seen.cjs" << 'PROGRAM'
const { ceil, ceilHours, ceilMinutes, floorHours } = require("pomeranian-durations");

console.log(...["PT2H", "PT1.1H", "PT0H", "PT59M"].map(ceilHours), ceilMinutes("PT2M"), ceilMinutes("PT59M"),
  floorHours("PT2H"), ceil("PT15M", "PT30M"), ceil("PT15M", "PT31M"));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "pomeranian-durations 1.11.4: $seen"
[ "$seen" = "PT3H PT2H PT1H PT1H PT3M PT60M PT2H PT45M PT45M" ]
