#!/usr/bin/env bash
# backoff 2.5.0 (waits between tries for JavaScript): with a randomisation factor the waits are up to twice as long as
# the longest one that was set, maxDelay.
#
# Guess: no wait is longer than maxDelay. The documentation says that the delay increases up to it.
# Seen: up to 600 ms where 300 are the longest. What is random is added after the cut. It is never taken away, so that
# with a factor of 1 the waits are one and a half times as long on average as without.
#
# Who it hurts: whoever sets the longest wait to stay within a lease, a timeout or a limit of a gateway: every other try
# comes too late.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" backoff@2.5.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { ExponentialStrategy, FibonacciStrategy } = require("backoff");

const waits = (Strategy, random) => {
  Math.random = () => random;
  const strategy = new Strategy({ initialDelay: 100, maxDelay: 300, randomisationFactor: 1 });
  return [1, 2, 3, 4].map(() => strategy.next()).join(" ");
};
const seen = [[ExponentialStrategy, 0], [ExponentialStrategy, 0.999], [FibonacciStrategy, 0.999]];
console.log(seen.map((pair) => waits(...pair)).join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "backoff 2.5.0, waits of a longest of 300 ms with the least and the most random, and by Fibonacci: $seen"
[ "$seen" = "100 200 300 300, 200 400 600 600, 200 200 400 600" ]
