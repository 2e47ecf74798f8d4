#!/usr/bin/env bash
# prom-client 15.1.3 with its tdigest 0.1.3 (Prometheus metrics for Node): of 1000 calls of 10 milliseconds and one of
# ten seconds, the summary says that the median is 20 milliseconds and the 90th percentile eight seconds.
#
# Guess: 0.01 seconds for the median, the 90th and the 99th percentile; each of these is a call of 10 milliseconds.
# Seen: 0.02, 8.01 and 9.81 seconds. Equal values are one point for the digest, and between two points it draws a line.
# With the digest's other class, that looks for equal values, they are 0.01; the summary does not use it. Count and sum
# are right.
#
# Who it hurts: summaries of values that repeat: sizes of batches, numbers of attempts, times in whole milliseconds. One
# outlier is an alert, and a policy that scales by the 90th percentile adds machines.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" prom-client@15.1.3 tdigest@0.1.3
cat > "$work/seen.cjs" << 'PROGRAM'
const { Summary } = require("prom-client");
const { Digest } = require("tdigest");

const percentiles = [0.5, 0.9, 0.99];
const summary = new Summary({ name: "seconds", help: "of calls", percentiles, registers: [] });
const digest = new Digest();
for (let call = 0; call <= 1000; call++) {
  const seconds = call < 1000 ? 0.01 : 10;
  summary.observe(seconds);
  digest.push(seconds);
}
summary.get().then(({ values }) => {
  const seen = values.filter(({ labels }) => labels.quantile).map(({ value }) => value.toFixed(2));
  console.log(seen.join(" "), percentiles.map((percentile) => digest.percentile(percentile)).join(" "));
});
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "prom-client 15.1.3, median, 90th and 99th percentile of the summary, and of the other digest: $seen"
[ "$seen" = "0.02 8.01 9.81 0.01 0.01 0.01" ]
