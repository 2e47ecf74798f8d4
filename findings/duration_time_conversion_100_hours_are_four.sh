#!/usr/bin/env bash
# duration-time-conversion 1.0.6 (seconds to hh:mm:ss and back, for JavaScript): a hundred hours are four. Whole days
# are dropped.
#
# Guess: 100:00:00.000, which its own t2d() reads as the 360000 seconds that they are, or an error, as for a negative
# number.
# Seen: 04:00:00.000. A day is 00:00:00.000 and 25 hours are 01:00:00.000. It is the time of day of a date.
#
# Who it hurts: timesheets and recordings of machine hours: what has gone on for more than a day is short by days, and
# the first day was right.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" duration-time-conversion@1.0.6
cat > "$work/seen.cjs" << 'PROGRAM'
const { d2t, t2d } = require("duration-time-conversion");

console.log([86399, 86400, 90000, 360000].map((seconds) => d2t(seconds)).join(" "), t2d("100:00:00.000"));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "duration-time-conversion 1.0.6, a day less a second, 24, 25 and 100 hours, and 100:00:00.000 read: $seen"
[ "$seen" = "23:59:59.000 00:00:00.000 01:00:00.000 04:00:00.000 360000" ]
