#!/usr/bin/env bash
# simple-token-bucket 2.0.0 (for JavaScript): at 1500 tokens a second, each call within the same millisecond gets a
# token of its own, and so it is at all rates from 1001 to 1999.
#
# Guess: one call of a thousand in the first millisecond passes, and 1500 of those of a second.
# Seen: all of the first millisecond, and 6500 of ten calls a millisecond. 600 a second are 999 and 300 are 333: the
# time that a token takes is cut to whole milliseconds, and for 1500 it is none. 500, 1000 and 2000 are right.
#
# Who it hurts: whoever keeps to the rate that another service allows, or sells one: the more often the bucket is asked,
# the more it gives.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" simple-token-bucket@2.0.0
cat > "$work/seen.mjs" << 'PROGRAM'
import { TokenBucket } from "simple-token-bucket";

let now = 0;
Date.now = () => now;

function passed(fillQuantity, milliseconds, calls) {
  now = 0;
  const bucket = new TokenBucket({ capacity: 10, fillQuantity, fillTime: 1000, initialCapacity: 0 });
  let count = 0;
  for (now = 1; now <= milliseconds; ++now)
    for (let call = 0; call < calls; ++call) if (bucket.take(1) === 0) ++count;
  return count;
}

console.log(passed(1500, 1, 1000), ...[300, 500, 600, 1000, 1500, 2000].map((rate) => passed(rate, 1000, 10)));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "simple-token-bucket 2.0.0, calls of a millisecond at 1500, and of a second at 300 to 2000: $seen"
[ "$seen" = "1000 333 500 999 1000 6500 2000" ]
