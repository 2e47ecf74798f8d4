#!/usr/bin/env bash
# sigs.k8s.io/yaml 1.6.0 (for Go, which Kubernetes and its tools read YAML with): a number that goes into a string field
# is written anew, as a float of 32 bits. Cents are lost from a hundred thousand on. gopkg.in/yaml.v3 3.0.1 has the text
# as it is.
#
# Guess: a field of type string gets the characters, or an error.
# Seen: amount: 1234567.89 is "1.2345679e+06", 1.10 is "1.1", 2026_11 is "202611" and 010 is "8". yaml.v3 has each as it
# was written.
#
# Who it hurts: whoever declares amounts, versions or ids as string to be safe from floats. The amount that is paid is
# 1234567.90, and version 1.10 is version 1.1.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	v3 "gopkg.in/yaml.v3"
	"sigs.k8s.io/yaml"
)

type invoice struct {
	Amount string `json:"amount" yaml:"amount"`
}

func main() {
	for _, text := range []string{"1234567.89", "1.10", "2026_11", "010"} {
		var one, other invoice
		if yaml.Unmarshal([]byte("amount: "+text), &one) != nil || v3.Unmarshal([]byte("amount: "+text), &other) != nil {
			panic(text)
		}
		fmt.Print(one.Amount, " ", other.Amount, "; ")
	}
}
PROGRAM
{ go mod init example && go get sigs.k8s.io/yaml@v1.6.0 gopkg.in/yaml.v3@v3.0.1; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "sigs.k8s.io/yaml 1.6.0 and yaml.v3 3.0.1: $seen"
[ "$seen" = "1.2345679e+06 1234567.89; 1.1 1.10; 202611 2026_11; 8 010; " ]
