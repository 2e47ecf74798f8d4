#!/usr/bin/env bash
# hashring 3.2.0 (consistent hashing for JavaScript): in a ring with weights a new node also moves keys from one old
# node to another.
#
# Guess: keys move to the new node only, which is what a consistent ring is for. It is so where all weights are 1.
# Seen: with weights 1, 1 and 2 a new node of weight 1 takes its share of 10000 keys, and 304 others move between the
# three old ones. Each node's number of points is a share of the total of weights, and changes with it.
#
# Who it hurts: caches and partitions on machines of two sizes. Adding a machine empties part of the old ones' caches,
# or moves the state of keys that were thought to stay, and whoever moves only the new node's keys loses the rest.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" hashring@3.2.0
cat > "$work/seen.mjs" << 'PROGRAM'
import HashRing from "hashring";

const keys = Array.from({ length: 10000 }, (_, i) => `key${i}`);
for (const weights of [{ a: 1, b: 1, c: 2 }, { a: 1, b: 1, c: 1 }]) {
  const ring = new HashRing(weights);
  const before = keys.map((key) => ring.get(key));
  ring.add({ d: 1 });
  const moved = keys.filter((key, i) => ring.get(key) !== before[i]);
  console.log(moved.length > 1000, moved.filter((key) => ring.get(key) !== "d").length);
}
PROGRAM
seen=$(node "$work/seen.mjs" | paste --serial --delimiters ';')
echo "hashring 3.2.0: keys that move between old nodes, weights 1 1 2 and 1 1 1: $seen"
[ "$seen" = "true 304;true 0" ]
