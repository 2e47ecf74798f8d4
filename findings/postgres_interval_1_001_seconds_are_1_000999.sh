#!/usr/bin/env bash
# postgres-interval 4.1.0 (intervals of PostgreSQL for JavaScript): an interval of 1.001 seconds that is written again,
# for the database or as ISO 8601, is 1.000999 seconds.
#
# Guess: toPostgres() is "1.001 seconds", and toISOString() has 1.001S: the database keeps microseconds exactly, and the
# object has one second and one millisecond.
# Seen: 1.000999 both times. Of the 60,000 intervals from 0 to 59.999 seconds, 978 lose a microsecond. The product with
# 1000000 is cut off, and 1.001 * 1000000 is 1000999.9999999999.
#
# Who it hurts: whoever reads a row and writes it back: with each round the interval is another one, a comparison for
# equality fails, and sums of usage do not add up.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" postgres-interval@4.1.0
cat > "$work/seen.cjs" << 'PROGRAM'
const parse = require("postgres-interval");

const seen = ["00:00:01.001", "00:00:04.056"].map((text) => {
  const interval = parse(text);
  return `${interval.seconds} ${interval.milliseconds} ${interval.toPostgres()} ${interval.toISOStringShort()}`;
});
let less = 0;
for (let millis = 1; millis < 60000; ++millis) {
  const text = (millis / 1000).toFixed(3);
  less += Number.parseFloat(parse(`00:00:${text.padStart(6, "0")}`).toPostgres()) < Number.parseFloat(text);
}
console.log(`${seen.join(", ")}, ${less}`);
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "postgres-interval 4.1.0, 1.001 and 4.056 seconds, and how many of 60000 are less: $seen"
[ "$seen" = "1 1 1.000999 seconds PT1.000999S, 4 56 4.056 seconds PT4.056S, 978" ]
