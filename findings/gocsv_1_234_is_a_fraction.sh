#!/usr/bin/env bash
# gocarina/gocsv (for Go, of 20 May 2024): a comma in a field of type float64 is a decimal point. 1,234 is 1.234.
# jszwec/csvutil 1.10.0 refuses it.
#
# Guess: an error, as strconv.ParseFloat() has one, and gocsv itself for 1,234.56 and for 1,234 in an int; or 1234.
# Seen: "1,234" is 1.234, "12,345" is 12.345 and "1,5" is 1.5.
#
# Who it hurts: importers of exports with thousands in commas: amounts up to 999 are right, larger ones are a thousandth
# of what they were if they have no cents, and nothing says so.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	"github.com/gocarina/gocsv"
	"github.com/jszwec/csvutil"
)

type row struct {
	Amount float64 `csv:"amount"`
	Pieces int     `csv:"pieces"`
}

func main() {
	for _, values := range []string{`"1,234",1`, `"12,345",2`, `"1,5",3`, `"1,234.56",4`, `1,"1,234"`} {
		csv := "amount,pieces\n" + values + "\n"
		var byGocsv, byCsvutil []row
		err := gocsv.UnmarshalString(csv, &byGocsv)
		fmt.Print(byGocsv, err == nil, csvutil.Unmarshal([]byte(csv), &byCsvutil) == nil, "; ")
	}
}
PROGRAM
gocsv=github.com/gocarina/gocsv@v0.0.0-20240520201108-78e41c74b4b1
{ go mod init example && go get "$gocsv" github.com/jszwec/csvutil@v1.10.0; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "gocsv of 20 May 2024: $seen"
[ "$seen" = "[{1.234 1}] true false; [{12.345 2}] true false; [{1.5 3}] true false; [{0 0}] false false; \
[{0 0}] false false; " ]
