#!/usr/bin/env bash
# parse-prometheus-text-format 1.1.1 (for JavaScript): of histograms with labels the last one is left, and its labels,
# sum and count are lost. Of summaries too.
#
# Guess: two metrics with the labels queue="a" and queue="b", each with its buckets, sum and count, as prom2json has it,
# with which it is meant to be compatible.
# Seen: one metric that has only the buckets of b. A histogram with no labels has sum and count too, and counters keep
# their labels.
#
# Who it hurts: whoever decides by what a service measures, one series for each queue or route: one of them stands for
# all, and which one it is depends on the order of the text.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" parse-prometheus-text-format@1.1.1
cat > "$work/seen.cjs" << 'PROGRAM'
const parse = require("parse-prometheus-text-format");

const histogram = (label, few, all) => `
wait_bucket{${[...label, 'le="1"']}} ${few}
wait_bucket{${[...label, 'le="+Inf"']}} ${all}
wait_sum{${label}} 9
wait_count{${label}} ${all}`;
const summary = (label, half) => `\nquick{${label},quantile="0.5"} ${half}\nquick_count{${label}} 9`;
const [a, b] = ['queue="a"', 'queue="b"'];
for (const text of [
  `# TYPE wait histogram${histogram([a], 500, 700)}${histogram([b], 1, 2)}\n`,
  `# TYPE wait histogram${histogram([], 5, 7)}\n`,
  `# TYPE quick summary${summary(a, 5)}${summary(b, 7)}\n`,
])
  console.log(JSON.stringify(parse(text)[0].metrics));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "parse-prometheus-text-format 1.1.1: $seen"
[ "$seen" = '[{"buckets":{"1":"1","+Inf":"2"}}]
[{"buckets":{"1":"5","+Inf":"7"},"count":"7","sum":"9"}]
[{"quantiles":{"0.5":"7"}}]' ]
