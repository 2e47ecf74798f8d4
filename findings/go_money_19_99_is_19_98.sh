#!/usr/bin/env bash
# Rhymond/go-money 1.0.15 (for Go): NewFromFloat() makes a cent less of many an amount. 19.99 is 19.98, and 0.29 is
# 0.28.
#
# Guess: 19.99. The documentation says that trailing decimals are rounded down, and 19.99 euros have none.
# Seen: 1998 cents. Of the amounts of 0.01 to 99.99, 573 are a cent less. The product with 100 is cut off, and 19.99 *
# 100 is 1998.9999999999998.
#
# Who it hurts: whoever takes prices from JSON or a spreadsheet and trusts a library that is there to avoid this.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	"github.com/Rhymond/go-money"
)

func main() {
	for _, amount := range []float64{19.99, 0.29, 4.35, 8.20, 10.50} {
		fmt.Print(money.NewFromFloat(amount, money.EUR).Amount(), " ")
	}
	less := 0
	for cents := int64(1); cents < 10000; cents++ {
		if money.NewFromFloat(float64(cents)/100, money.EUR).Amount() == cents-1 {
			less++
		}
	}
	fmt.Print(less)
}
PROGRAM
{ go mod init example && go get github.com/Rhymond/go-money@v1.0.15; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "go-money 1.0.15, cents of 19.99, 0.29, 4.35, 8.20 and 10.50, and how many of 9999 amounts are less: $seen"
[ "$seen" = "1998 28 434 819 1050 573" ]
