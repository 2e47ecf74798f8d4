#!/usr/bin/env bash
# crontzconvert 1.1.1 (crontabs of one zone to another, for JavaScript): where a time moves over midnight and the month
# is given, the whole month moves. Each day of January at 23:00 becomes each day of February at 00:00.
#
# Guess: all runs of January but the last are in January, an hour later: "0 0 0 2-31 1 *", and one on 1 February. If one
# expression cannot say that, an error.
# Seen: "0 0 0 * 2 *". "0 30 23 * 6-8 *" becomes July to September, and December January. At 22:00, which does not
# move over midnight, the month stays, and with a day of the month the result is right.
#
# Who it hurts: whoever enters jobs of a season in the local time and runs them in UTC: they begin a month late (or
# early) and end so, and no test at noon finds it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" crontzconvert@1.1.1
cat > "$work/seen.cjs" << 'PROGRAM'
const { convert } = require("crontzconvert");

const night = ["0 0 23 * 1 *", "0 30 23 * 6-8 *", "0 30 23 * 12 *", "0 0 22 * 1 *", "0 0 23 31 1 *"];
console.log([
  ...night.map((text) => convert(text, "UTC", "Africa/Lagos")),
  convert("0 0 0 * 1 *", "Africa/Lagos", "UTC"),
].join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "crontzconvert 1.1.1, nights in UTC for Lagos, and one back: $seen"
[ "$seen" = "0 0 0 * 2 *; 0 30 0 * 7-9 *; 0 30 0 * 1 *; 0 0 23 * 1 *; 0 0 0 1 2 *; 0 0 23 * 12 *" ]
