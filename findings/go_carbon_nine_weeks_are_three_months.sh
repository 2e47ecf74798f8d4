#!/usr/bin/env bash
# golang-module/carbon 2.3.12 (dates for Go): DiffInMonths() goes by the numbers of the months. From 30 November to
# 1 February, nine weeks, there are three months.
#
# Guess: 2, as in the other libraries of this name: months that are over. DiffInYears() does count whole years.
# Seen: 3. From 15 January 2025 to 14 January 2026 there are 12 months and 0 years, and from 31 January to 1 March two
# months in 29 days. Only below 28 days there is none. DiffForHumans() says the same.
#
# Who it hurts: whoever bills by the month or waits for a term of months: the month that has begun counts as a whole
# one, up to 30 days early.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	"github.com/golang-module/carbon/v2"
)

func main() {
	for _, days := range [][2]string{
		{"2025-11-30", "2026-02-01"}, {"2025-01-15", "2026-01-14"}, {"2026-01-31", "2026-03-01"},
	} {
		from, to := carbon.Parse(days[0], "UTC"), carbon.Parse(days[1], "UTC")
		fmt.Printf("%d days %d months %d years, ", from.DiffInDays(to), from.DiffInMonths(to), from.DiffInYears(to))
	}
}
PROGRAM
{ go mod init example && go get github.com/golang-module/carbon/v2@v2.3.12; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "carbon 2.3.12, 30 November to 1 February, 15 to 14 January, 31 January to 1 March: $seen"
[ "$seen" = "63 days 3 months 0 years, 364 days 12 months 0 years, 29 days 2 months 0 years, " ]
