#!/usr/bin/env bash
# goccy/go-yaml 1.19.2 (for Go): what looks like a number changes on its way into a string field. 1.10 is "1.1", and 010
# is "8". gopkg.in/yaml.v3 3.0.1, which it is meant to replace, has the text as it is. 08 and 1e3 stay.
#
# Guess: the field gets the characters that the file has.
# Seen: 1.10 is "1.1", 010 is "8", 1_000 is "1000" and 1234567.89 is "1.23456789e+06".
#
# Who it hurts: whoever moves from yaml.v3, whose repository is archived. Versions, postal codes and ids in a string
# field were right before and are other ones now, and 08 and 010 are changed differently.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	"github.com/goccy/go-yaml"
	v3 "gopkg.in/yaml.v3"
)

type item struct {
	ID string `yaml:"id"`
}

func main() {
	for _, text := range []string{"1.10", "010", "1_000", "1234567.89", "08", "1e3"} {
		var one, other item
		if yaml.Unmarshal([]byte("id: "+text), &one) != nil || v3.Unmarshal([]byte("id: "+text), &other) != nil {
			panic(text)
		}
		fmt.Print(one.ID, " ", other.ID, "; ")
	}
}
PROGRAM
{ go mod init example && go get github.com/goccy/go-yaml@v1.19.2 gopkg.in/yaml.v3@v3.0.1; } > log 2>&1 ||
  { cat log && exit 1; }
seen=$(go run .)
echo "goccy/go-yaml 1.19.2 and yaml.v3 3.0.1: $seen"
[ "$seen" = "1.1 1.10; 8 010; 1000 1_000; 1.23456789e+06 1234567.89; 08 08; 1e3 1e3; " ]
