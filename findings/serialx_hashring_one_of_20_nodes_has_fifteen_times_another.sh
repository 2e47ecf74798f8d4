#!/usr/bin/env bash
# serialx/hashring (consistent hashing for Go, of 27 July 2020): a node has one point on the ring. Of 20 equal nodes the
# one with the most keys has fifteen times as many as the one with the fewest.
#
# Guess: of 90000 keys some 4500 for each of 20 nodes, give or take a fifth, and as many for a new one: the
# documentation says that the ring is built as libketama does it, which has 160 points for each node.
# Seen: from 858 to 13143, and a 21st node gets 648. With weight 100 for all 20 nodes it is from 3778 to 5445, for the
# weight is the number of points.
#
# Who it hurts: whoever spreads a load without weights, as in the examples: one node is full while others idle, and a
# node that is added to help gets next to nothing.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	"github.com/serialx/hashring"
)

func counts(ring *hashring.HashRing) map[string]int {
	count := map[string]int{}
	for key := 0; key < 90000; key++ {
		node, _ := ring.GetNode(fmt.Sprint("key", key))
		count[node]++
	}
	return count
}

func main() {
	var nodes []string
	weights := map[string]int{}
	for number := 0; number < 20; number++ {
		node := fmt.Sprint("node-", number)
		nodes = append(nodes, node)
		weights[node] = 100
	}
	plain := hashring.New(nodes)
	for _, ring := range []*hashring.HashRing{plain, hashring.NewWithWeights(weights)} {
		least, most := 90000, 0
		for _, count := range counts(ring) {
			least, most = min(least, count), max(most, count)
		}
		fmt.Print(least, " ", most, ", ")
	}
	fmt.Print(counts(plain.AddNode("node-20"))["node-20"])
}
PROGRAM
{ go mod init example && go get github.com/serialx/hashring@v0.0.0-20200727003509-22c0c7ab6b1b; } > log 2>&1 ||
  { cat log && exit 1; }
seen=$(go run .)
echo "serialx/hashring, keys of the least and most of 20 nodes, with weights of 100, and of a new node: $seen"
[ "$seen" = "858 13143, 3778 5445, 648" ]
