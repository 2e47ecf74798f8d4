#!/usr/bin/env bash
# node-hashring 1.0.2 (consistent hashing for JavaScript): a node that is in the list twice leaves keys without a node.
#
# Guess: as with the list without the repetition. The constructor removes what is there twice from its list of nodes.
# Seen: of 1000 keys 223 are of no node: findNode() has undefined. The ring has room for three nodes and is filled for
# two; the search ends in the empty places. Without the repetition each key has a node.
#
# Who it hurts: whoever makes the list from a configuration or from addresses that services announced: one repetition,
# and more than a fifth of the keys go nowhere.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" node-hashring@1.0.2
cat > "$work/seen.cjs" << 'PROGRAM'
const HashRing = require("node-hashring");

const seen = [["a", "b"], ["a", "b", "a"]].map((nodes) => {
  const ring = new HashRing(nodes);
  const counts = { a: 0, b: 0, undefined: 0 };
  for (let key = 0; key < 1000; key++) counts[ring.findNode(`k${key}`)]++;
  return `${ring.nodes}: ${counts.a} ${counts.b} ${counts.undefined}`;
});
console.log(seen.join("; "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "node-hashring 1.0.2, keys on a, on b and nowhere for the lists a, b and a, b, a: $seen"
[ "$seen" = "a,b: 433 567 0; a,b: 315 462 223" ]
