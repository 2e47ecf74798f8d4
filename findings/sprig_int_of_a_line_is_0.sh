#!/usr/bin/env bash
# sprig 3.3.0 (Helm's functions for templates): int, int64, atoi, float64 and add take a text that is not quite a number
# for 0. A line feed at its end, a fraction or a comma is enough.
#
# Guess: "3\n" is 3, or the template fails. "2.5" is 2, as the number 2.5 is.
# Seen: int of "3\n" is 0, and so are atoi of it, float64 of "2.5\n", and int of "2.5", "1,000", "1e3" and "08". max of
# "10\n" and 1 is 1. int of the number 2.5 is 2.
#
# Who it hurts: charts that read a number from a file (.Files.Get, whose text ends with a line feed) or from
# --set-string: the deployment gets 0 replicas, or a limit of 0, and helm upgrade succeeds.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"os"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

func main() {
	const text = `{{ int "3\n" }} {{ atoi "3\n" }} {{ float64 "2.5\n" }} {{ int "2.5" }} {{ int "1,000" }} ` +
		`{{ int "1e3" }} {{ int "08" }} {{ max "10\n" 1 }} {{ int "3" }} {{ int 2.5 }}`
	made := template.Must(template.New("t").Funcs(sprig.TxtFuncMap()).Parse(text))
	if err := made.Execute(os.Stdout, nil); err != nil {
		panic(err)
	}
}
PROGRAM
{ go mod init example && go get github.com/Masterminds/sprig/v3@v3.3.0; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "sprig 3.3.0: $seen"
[ "$seen" = "0 0 0 0 0 0 0 1 3 2" ]
