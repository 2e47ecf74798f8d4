#!/usr/bin/env bash
# gopkg.in/yaml.v3 3.0.1 (for Go): a fraction goes into a field of type int without an error, cut off. encoding/json
# refuses it.
#
# Guess: "cannot unmarshal !!float into int", as there is for a quoted "5".
# Seen: workers: 2.9 is 2, 0.5 is 0 and -1.5 is -1. "5" in quotes is an error.
#
# Who it hurts: whoever writes a limit, a price in cents or a number of replicas with a fraction, or mistakes the unit:
# 0.5 hours in a field of whole hours is no time at all, and 0 means "without a limit" to many programs.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"
)

func main() {
	for _, text := range []string{"2.9", "0.5", "-1.5", `"5"`} {
		var one, other struct{ Workers int }
		failed := yaml.Unmarshal([]byte("workers: "+text), &one) != nil
		refused := json.Unmarshal([]byte(`{"workers":`+text+`}`), &other) != nil
		fmt.Print(one.Workers, " ", failed, " ", refused, "; ")
	}
}
PROGRAM
{ go mod init example && go get gopkg.in/yaml.v3@v3.0.1; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "2.9, 0.5, -1.5 and \"5\": the int, an error of yaml.v3 3.0.1, an error of encoding/json: $seen"
[ "$seen" = '2 false true; 0 false true; -1 false true; 0 true true; ' ]
