#!/usr/bin/env bash
# Rhymond/go-money 1.0.15 (for Go): Round() rounds a half towards zero. 0.50 is 0.00, and 1.50 is 1.00.
#
# Guess: 1.00 and 2.00, as people round, or 0.00 and 2.00, as banks do. The documentation has "rounded to nearest zero".
# Seen: 0.00, 1.00 and 2.00 of 0.50, 1.50 and 2.50, and 2.00 of 1.51. -1.50 is -1.00.
#
# Who it hurts: whoever bills in whole units: of amounts that end in a half, all are billed half a unit less.
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
	for _, cents := range []int64{50, 150, 250, 151, -150} {
		fmt.Print(money.New(cents, money.EUR).Round().Amount(), " ")
	}
}
PROGRAM
{ go mod init example && go get github.com/Rhymond/go-money@v1.0.15; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "go-money 1.0.15, 0.50, 1.50, 2.50, 1.51 and -1.50 rounded, in cents: $seen"
[ "$seen" = "0 100 200 200 -100 " ]
