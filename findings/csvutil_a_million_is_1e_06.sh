#!/usr/bin/env bash
# jszwec/csvutil 1.10.0 (CSV for Go): a float from a million on is written with an exponent. 1000000 is 1E+06.
#
# Guess: 1000000, and 1234567.89 as it is, as encoding/json of Go writes both.
# Seen: 1E+06 and 1.23456789E+06. 999999.99 is written whole. 0.00001 is 1E-05.
#
# Who it hurts: whoever hands amounts or counts to a program that takes digits, a point and no more, such as an import
# of a bank or FlatPack 4.0.18, for which 1.5E3 is 1.53. Tests with small amounts pass.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jszwec/csvutil"
)

type payment struct {
	Amount float64 `csv:"amount"`
}

func main() {
	var payments []payment
	var amounts []float64
	for _, amount := range []float64{999999.99, 1000000, 1234567.89, 0.00001} {
		payments, amounts = append(payments, payment{amount}), append(amounts, amount)
	}
	csv, err := csvutil.Marshal(payments)
	if err != nil {
		panic(err)
	}
	text, err := json.Marshal(amounts)
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Join(strings.Fields(string(csv)), " "), string(text))
}
PROGRAM
{ go mod init example && go get github.com/jszwec/csvutil@v1.10.0; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "csvutil 1.10.0 and encoding/json: $seen"
[ "$seen" = "amount 999999.99 1E+06 1.23456789E+06 1E-05 [999999.99,1000000,1234567.89,0.00001]" ]
