#!/usr/bin/env bash
# node-cron-expression 1.3.1 (builds cron expressions from functions, for JavaScript): atHour(3) is each minute of the
# hour, sixty runs, and not three o'clock.
#
# Guess: "0 3 * * *". The comment of atHour() says that it defaults to the first minute of the hour, with this example.
# Seen: "* 3 * * *". Combined with a weekday it is "* 3 * * 1", and a list of two hours is 120 runs a day. Weekdays and
# everyHour() do begin at minute 0, as the documentation says.
#
# Who it hurts: whoever has a backup or an invoice run "at three": it starts sixty times a night, and the next one while
# the last still works.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" node-cron-expression@1.3.1
cat > "$work/seen.cjs" << 'PROGRAM'
const { atHour, combine, everyHour, onDayOfTheWeek } = require("node-cron-expression");

const seen = [atHour(3), atHour([3, 15]), combine(atHour(3), onDayOfTheWeek(1)), onDayOfTheWeek(1), everyHour()];
console.log(seen.join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "node-cron-expression 1.3.1, at 3, at 3 and 15, Mondays at 3, Mondays, each hour: $seen"
[ "$seen" = "* 3 * * *; * 3,15 * * *; * 3 * * 1; 0 0 * * 1; 0 * * * *" ]
