#!/usr/bin/env bash
# tdigest 0.1.3 (percentiles of a stream for JavaScript): 900 waits of 5 ms and 100 of 100 ms have a median of 14.5 ms,
# and the 75th percentile is 62 ms.
#
# Guess: 5 for all up to the 90th percentile: nine of ten waits are 5 ms, and none is between 5 and 100. Centroids that
# hold one value each cannot be more exact.
# Seen: 14.5, 62 and 90.5 for 50, 75 and 90 per cent. p_rank(5) says that 45 per cent are 5 ms or less. It draws a line
# from the middle of one centroid to the middle of the next. A hundred waits of 5 and one of 100 have a 99th percentile
# of 99.04. The class Digest of the same package has 5.
#
# Who it hurts: dashboards and limits on latencies with a timeout or a cache: most values are alike there, and the
# percentiles are waits that nobody had.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" tdigest@0.1.3
cat > "$work/seen.cjs" << 'PROGRAM'
const { Digest, TDigest } = require("tdigest");

const seen = (digest, fast, slow, percents) => {
  for (let number = 0; number < fast + slow; ++number) {
    digest.push(number < fast ? 5 : 100);
  }
  return percents.map((percent) => digest.percentile(percent / 100).toFixed(2)).join(" ");
};
const digest = new TDigest();
console.log([
  seen(digest, 900, 100, [25, 50, 75, 90]),
  digest.p_rank(5).toFixed(2),
  seen(new TDigest(), 100, 1, [99]),
  seen(new Digest(), 900, 100, [25, 50, 75, 90]),
].join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "tdigest 0.1.3, 25, 50, 75 and 90 % of 900 fast and 100 slow waits, rank of 5, 99 % of 100 and 1, Digest: $seen"
[ "$seen" = "5.00 14.50 62.00 90.50, 0.45, 99.04, 5.00 5.00 5.00 5.00" ]
