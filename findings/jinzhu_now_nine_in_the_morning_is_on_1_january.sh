#!/usr/bin/env bash
# jinzhu/now 1.1.5 (times from texts for Go): a time without a date is of today only if it has nothing but digits and
# colons. "9:00AM" is on 1 January of this year, and "9:00" today.
#
# Guess: today at nine, as the README has it for "12:20"; time.Kitchen, which "9:00AM" is, is one of its formats.
# Seen: on 17 March both "9:00AM" and "12:20:13.5" are on 1 January, and "9:00" and "12:20:13" are on 17 March. The year
# is the present one, and there is no error.
#
# Who it hurts: whoever lets people enter when a job begins: nine in the morning is over since January, and the job
# begins at once.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"
	"time"

	"github.com/jinzhu/now"
)

func main() {
	today := now.With(time.Date(2026, 3, 17, 8, 0, 0, 0, time.UTC))
	for _, text := range []string{"9:00AM", "5:00PM", "12:20:13.5", "9:00", "12:20:13"} {
		fmt.Print(today.MustParse(text).Format("01-02T15:04:05 "))
	}
}
PROGRAM
{ go mod init example && go get github.com/jinzhu/now@v1.1.5; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "now 1.1.5, 9:00AM, 5:00PM, 12:20:13.5, 9:00 and 12:20:13 on 17 March: $seen"
[ "$seen" = "01-01T09:00:00 01-01T17:00:00 01-01T12:20:13 03-17T09:00:00 03-17T12:20:13 " ]
