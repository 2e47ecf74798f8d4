#!/usr/bin/env bash
# @icholy/duration 5.1.0 (for JavaScript): what stands before a number and its unit is ignored. "1,5h" is five hours,
# and "1 h 30m" half an hour.
#
# Guess: an error, as "abc", "90" and "10min" are errors, or an hour and a half.
# Seen: 300 and 30 minutes. "2H30m" is 30, "1h 30" 60, and "1h-30m" 90. "1.5h" is right.
#
# Who it hurts: whoever reads time limits and leases from settings: one that is written as people of half of Europe
# write it is another one, and longer or shorter.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @icholy/duration@5.1.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { Duration } = require("@icholy/duration");

console.log(...["1,5h", "1 h 30m", "2H30m", "1h 30", "1h-30m", "1.5h"].map((text) => new Duration(text).minutes()));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "@icholy/duration 5.1.0, minutes of 1,5h, 1 h 30m, 2H30m, 1h 30, 1h-30m and 1.5h: $seen"
[ "$seen" = "300 30 30 60 90 90" ]
