#!/usr/bin/env bash
# natural-cron 1.1.0 (builds and describes cron expressions, for JavaScript): what the description does not know is left
# out of it. Noon of each day from January to March is described as "At 12:00 every day".
#
# Guess: it names the three months, as it does for 1,2,3, or it says "Custom schedule", as for other expressions that it
# does not describe.
# Seen: "At 12:00 every day". A range of days, each second day, and weekdays in December are "every day", too, and the
# first day of each third month is "on day 1 of the month".
#
# Who it hurts: whoever shows the description to have a schedule confirmed: a job of one quarter is approved as a daily
# one, and a daily one looks the same.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" natural-cron@1.1.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { describeCron } = require("natural-cron");

const dates = ["* 1,2,3 *", "* 1-3 *", "1-15 * *", "*/2 * *", "* 12 1-5", "1 */3 *"];
console.log(dates.map((date) => describeCron(`0 12 ${date}`)).join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "natural-cron 1.1.0, months 1,2,3, months 1-3, days 1-15, */2, weekdays of December, months */3: $seen"
[ "$seen" = "At 12:00, in January, February and March; At 12:00 every day; At 12:00 every day; At 12:00 every day; \
At 12:00 every day; At 12:00, on day 1 of the month" ]
