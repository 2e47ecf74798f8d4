#!/usr/bin/env bash
# go-quartz 0.15.2 (a scheduler for Go): a job of the 31st that is scheduled in a shorter month runs first on a day that
# the month would have next. 31 February is 3 March, 31 April is 1 May, and 29 February 1 March.
#
# Guess: "0 0 0 31 * ?" in February waits until 31 March, as with Quartz, whose expressions these are, in April until
# 31 May, and "0 0 0 29 2 ?" until the next leap year.
# Seen: the first run comes on 3 March, on 1 May, and on 1 March 2027. Those after it are right: 31 March, 31 May and
# 29 February 2028. L, the last day of the month, is right from the first run on.
#
# Who it hurts: whoever bills or closes a month on its 30th or 31st, and restarts the program in a short month: there is
# one run too many, four weeks too early.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"
	"time"

	"github.com/reugn/go-quartz/quartz"
)

func show(expression string, month time.Month) {
	trigger, err := quartz.NewCronTriggerWithLoc(expression, time.UTC)
	if err != nil {
		panic(err)
	}
	at := time.Date(2027, month, 15, 12, 0, 0, 0, time.UTC).UnixNano()
	for range 2 {
		if at, err = trigger.NextFireTime(at); err != nil {
			panic(err)
		}
		fmt.Print(time.Unix(0, at).UTC().Format("2006-01-02"), " ")
	}
}

func main() {
	show("0 0 0 31 * ?", time.February)
	show("0 0 0 31 * ?", time.April)
	show("0 0 0 29 2 ?", time.January)
	show("0 0 0 L * ?", time.February)
}
PROGRAM
{ go mod init example && go get github.com/reugn/go-quartz@v0.15.2; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "go-quartz 0.15.2, two runs after 15 February, April, January (29 February) and February (the last day): $seen"
[ "$seen" = "2027-03-03 2027-03-31 2027-05-01 2027-05-31 2027-03-01 2028-02-29 2027-02-28 2027-03-31 " ]
