#!/usr/bin/env bash
# teambition/rrule-go 1.8.2 (recurrence rules for Go): in spring a rule of each hour has one instant twice, and one of
# each half hour goes back in time.
#
# Guess: each instant once, in order. RFC 5545 leaves out times that a zone does not have when a rule makes them.
# Seen: FREQ=HOURLY from midnight on 29 March 2026 in Berlin is 00:00, 01:00, 03:00, 03:00, 04:00. INTERVAL=30 of
# FREQ=MINUTELY from 01:30 is 01:30, 03:00, 03:30, 03:00, 03:30, 04:00.
#
# Who it hurts: whoever makes an item of work for each occurrence: an hour is billed twice. A loop that takes the last
# occurrence as the time up to which all is done does half an hour again.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"
	"time"
	_ "time/tzdata"

	"github.com/teambition/rrule-go"
)

func show(frequency rrule.Frequency, interval, hour, minute, count int) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	start := time.Date(2026, 3, 29, hour, minute, 0, 0, berlin)
	rule, err := rrule.NewRRule(rrule.ROption{Freq: frequency, Interval: interval, Count: count, Dtstart: start})
	if err != nil {
		panic(err)
	}
	for _, at := range rule.All() {
		fmt.Print(at.Format("15:04"), " ")
	}
}

func main() {
	show(rrule.HOURLY, 1, 0, 0, 5)
	show(rrule.MINUTELY, 30, 1, 30, 6)
}
PROGRAM
{ go mod init example && go get github.com/teambition/rrule-go@v1.8.2; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "rrule-go 1.8.2: $seen"
[ "$seen" = "00:00 01:00 03:00 03:00 04:00 01:30 03:00 03:30 03:00 03:30 04:00 " ]
