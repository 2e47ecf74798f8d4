#!/usr/bin/env bash
# @sapphire/cron 1.2.1 (cron expressions for JavaScript): a range that goes over the end is turned around. FRI-MON is
# Monday to Friday, and the hours 22-2 are 02:00 to 22:00.
#
# Guess: Friday, Saturday, Sunday and Monday, as some cron programs have it, or an error, as others do.
# Seen: from Monday, 2 March 2026, the days are 2, 3, 4, 5, 6 and 9 March. For 22-2 there are runs from 02:00 to 22:00
# and none at 23:00, 00:00 and 01:00. NOV-FEB is February to November. The two ends of a range are put in order.
#
# Who it hurts: heavy work that is kept for weekends or nights: it runs just when it must not, all day long, and not at
# the times that were asked for.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @sapphire/cron@1.2.1
cat > "$work/seen.cjs" << 'PROGRAM'
const { Cron } = require("@sapphire/cron");

const runs = (expression, count, from, to) => {
  const cron = new Cron(expression);
  const seen = [];
  for (let date = new Date("2026-03-02T00:00:00Z"); seen.length < count; ) {
    date = cron.next(date);
    seen.push(Number(date.toISOString().slice(from, to)));
  }
  return seen.join(" ");
};
console.log([
  runs("0 10 * * FRI-MON", 6, 8, 10),
  runs("0 22-2 * * *", 22, 11, 13),
  runs("0 10 1 NOV-FEB *", 10, 5, 7),
].join("; "));
PROGRAM
seen=$(cd "$work" && TZ=UTC node seen.cjs)
echo "@sapphire/cron 1.2.1, days of FRI-MON, hours of 22-2, months of NOV-FEB: $seen"
[ "$seen" = "2 3 4 5 6 9; 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 2; 4 5 6 7 8 9 10 11 2 3" ]
