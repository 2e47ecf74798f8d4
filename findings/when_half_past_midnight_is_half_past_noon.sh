#!/usr/bin/env bash
# olebedev/when 1.1.0 (times in English for Go): 12 am is noon. "tomorrow at 12:30 am" is half past twelve at noon, as
# "tomorrow at 12:30 pm" is.
#
# Guess: 00:30 of the next day, and 00:00 for 12am: am is before noon. 1am and 11:30 pm are right.
# Seen: 12:30 and 12:00, with either writing. The hours from 1 to 11 are as they should be; a midnight is found only as
# 0:30.
#
# Who it hurts: jobs of the night that are planned in words: a maintenance at 12:30 am stops all at lunchtime, and the
# words that were read are given back unchanged.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"
	"time"

	"github.com/olebedev/when"
)

func main() {
	now := time.Date(2026, 3, 17, 9, 0, 0, 0, time.UTC)
	for _, words := range []string{"12:30 am", "12am", "12:30 pm", "1am", "11:30 pm", "0:30"} {
		result, err := when.EN.Parse("tomorrow at "+words, now)
		if err != nil {
			panic(err)
		}
		fmt.Print(result.Time.Format("02T15:04 "))
	}
}
PROGRAM
{ go mod init example && go get github.com/olebedev/when@v1.1.0; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "when 1.1.0, 12:30 am, 12am, 12:30 pm, 1am, 11:30 pm and 0:30: $seen"
[ "$seen" = "18T12:30 18T12:00 18T12:30 18T01:00 18T23:30 18T00:30 " ]
