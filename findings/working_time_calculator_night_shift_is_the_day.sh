#!/usr/bin/env bash
# working-time-calculator 0.0.2 (for JavaScript): working hours over midnight are counted as the hours outside of them.
# From noon to noon a night shift of 22:00 to 06:00 has 16 hours.
#
# Guess: 8 hours, or an error when the stop is before the start.
# Seen: 16, as for a shift of 06:00 to 22:00. From 23:00 to 05:00, in the midst of the shift, there are no hours, and of
# 18:00 to 00:00 all others of the day. A stop at 24:00 is right.
#
# Who it hurts: whoever bills or measures support at night: tickets of the night wait for no time at all, and those of
# the day, when nobody works, are late.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" working-time-calculator@0.0.2
cat > "$work/seen.cjs" << 'PROGRAM'
const Calculator = require("working-time-calculator");

const seen = [["22:00", "06:00"], ["06:00", "22:00"], ["18:00", "00:00"], ["18:00", "24:00"]].map(([start, stop]) => {
  const calculator = new Calculator();
  calculator.addWorkingHours(Calculator.WEEKDAYS, start, stop, "UTC");
  const day = calculator.calcHoursBetween("2026-01-05T12:00:00Z", "2026-01-06T12:00:00Z");
  return `${day} ${calculator.calcHoursBetween("2026-01-05T23:00:00Z", "2026-01-06T05:00:00Z")}`;
});
console.log(seen.join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "working-time-calculator 0.0.2, 22-06, 06-22, 18-00 and 18-24, from noon to noon and from 23 to 05: $seen"
[ "$seen" = "16 0, 16 0, 18 5, 6 1" ]
