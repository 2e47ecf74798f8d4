#!/usr/bin/env bash
# adhocore/gronx 1.20.4 (cron expressions for Go): in the hour that autumn repeats, the tick before a time is after it,
# and the ticks of an hour are left out on the way forth. In UTC both are right.
#
# Guess: PrevTickBefore() of 02:30 summer time in Berlin on 25 October 2026 with */15 is 02:15, and NextTickAfter() is
# 02:45, a quarter of an hour away each.
# Seen: before 00:30 UTC is 01:15 UTC, and before that 01:00 and then 01:45 UTC: the four ticks come round and round.
# After 00:30 UTC is 01:45 UTC.
#
# Who it hurts: schedulers that ask for the last tick to find runs that were missed. In that hour it is one that is not
# there yet, a walk back to the last run that was done goes in circles, and runs of the hour before are left out.
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

	"github.com/adhocore/gronx"
)

func show(zone string) {
	location, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	start := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC).In(location)
	after, err := gronx.NextTickAfter("*/15 * * * *", start, false)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: after %s before", zone, after.UTC().Format("15:04"))
	for at, i := start, 0; i < 3; i++ {
		if at, err = gronx.PrevTickBefore("*/15 * * * *", at, false); err != nil {
			panic(err)
		}
		fmt.Print(" ", at.UTC().Format("15:04"))
	}
	fmt.Print("; ")
}

func main() {
	show("Europe/Berlin")
	show("UTC")
}
PROGRAM
{ go mod init example && go get github.com/adhocore/gronx@v1.20.4; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "gronx 1.20.4, at 00:30 UTC, in UTC: $seen"
[ "$seen" = "Europe/Berlin: after 01:45 before 01:15 01:00 01:45; UTC: after 00:45 before 00:15 00:00 23:45; " ]
