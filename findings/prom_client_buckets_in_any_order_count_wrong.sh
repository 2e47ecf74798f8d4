#!/usr/bin/env bash
# prom-client 15.1.3 (Prometheus for JavaScript): a histogram takes its buckets in any order, and counts wrong when they
# are not sorted. The clients for Go and Python refuse such buckets.
#
# Guess: the buckets are sorted, or refused.
# Seen: with buckets [10, 1, 5] and the values 0.5, 3, 7 and 20 le="1" and le="5" are both 3, and should be 1 and 2.
#
# Who it hurts: whoever adds a bucket at the end of a list, such as the limit that an alert needs. The quantiles and the
# share of requests within the limit are too good, and no alert comes.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" prom-client@15.1.3
cat > "$work/seen.mjs" << 'PROGRAM'
import client from "prom-client";

for (const buckets of [[10, 1, 5], [1, 5, 10]]) {
  const registry = new client.Registry();
  const histogram = new client.Histogram({ name: "h", help: "h", buckets, registers: [registry] });
  [0.5, 3, 7, 20].forEach((value) => histogram.observe(value));
  const text = await registry.metrics();
  console.log(...[1, 5, 10].map((le) => text.match(`h_bucket{le="${le}"} (.*)`)[1]));
}
PROGRAM
seen=$(node "$work/seen.mjs" | paste --serial --delimiters ';')
echo "prom-client 15.1.3, counts of le 1, 5 and 10, unsorted and sorted: $seen"
[ "$seen" = "3 3 3;1 2 3" ]
