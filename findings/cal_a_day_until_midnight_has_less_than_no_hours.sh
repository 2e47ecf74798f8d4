#!/usr/bin/env bash
# rickar/cal 2.1.13 (holidays and working time for Go): a working day from 8:00 to 24:00 has minus eight hours, and only
# what is between 8:00 and 9:00 is working time.
#
# Guess: SetWorkHours(8*time.Hour, 24*time.Hour) gives days of 16 hours: start is less than end, as it asks for.
# Seen: WorkHours() is -8h, and 10:00 is not working time; 8:30 is. WorkHoursInRange() of 10:00 to midnight is 16 hours,
# as it begins at 8:00. The end's hours are taken modulo 24. Until 23:59 all is right.
#
# Who it hurts: shops and hotlines that are open until midnight: sums of working hours fall with each day, and calls of
# the day count as out of hours.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"
	"time"

	"github.com/rickar/cal/v2"
)

func main() {
	morning := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	for _, end := range []time.Duration{24*time.Hour - time.Minute, 24 * time.Hour} {
		calendar := cal.NewBusinessCalendar()
		calendar.SetWorkHours(8*time.Hour, end)
		fmt.Print(calendar.WorkHours(morning), " ", calendar.IsWorkTime(morning), " ",
			calendar.IsWorkTime(morning.Add(-90*time.Minute)), " ",
			calendar.WorkHoursInRange(morning, morning.Add(14*time.Hour)), "; ")
	}
}
PROGRAM
{ go mod init example && go get github.com/rickar/cal/v2@v2.1.13; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "rickar/cal 2.1.13, to 23:59 and to 24:00: hours of a day, 10:00 and 8:30 are worked, hours from 10:00: $seen"
[ "$seen" = "15h59m0s true true 13h59m0s; -8h0m0s false true 16h0m0s; " ]
