#!/usr/bin/env bash
# hashicorp/cronexpr 1.1.3 (for Go, which Nomad uses): hours over midnight, 22-2, are accepted and never come. 5-7, from
# Friday to Sunday, is Friday and Saturday. robfig/cron 3.0.1 refuses both.
#
# Guess: 22:00 to 02:00, or an error, as there is for the hour 24. The weekday 7 alone is Sunday.
# Seen: Next() of "0 22-2 * * *" is the zero time, which stands for "never again". Of "0 0 * * 5-7" from Sunday, 1 March
# 2026 the days are 6, 7, 13 and 14. 6-1 never comes, and 7 is 8 and 15.
#
# Who it hurts: whoever schedules a batch for the night hours, or for the weekend. The job is registered without a
# complaint, and the night's runs or those of Sunday are missing.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"
	"time"

	"github.com/hashicorp/cronexpr"
	"github.com/robfig/cron/v3"
)

func main() {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, text := range []string{"0 22-2 * * *", "0 0 * * 5-7", "0 0 * * 6-1", "0 0 * * 7"} {
		expression, err := cronexpr.Parse(text)
		if err != nil {
			panic(err)
		}
		for _, at := range expression.NextN(start, 4) {
			fmt.Print(at.Format("02T15 "))
		}
		_, err = cron.ParseStandard(text)
		fmt.Print(expression.Next(start).IsZero(), " ", err == nil, "; ")
	}
	_, err := cronexpr.Parse("0 24 * * *")
	fmt.Print(err == nil)
}
PROGRAM
{ go mod init example && go get github.com/hashicorp/cronexpr@v1.1.3 github.com/robfig/cron/v3@v3.0.1; } > log 2>&1 ||
  { cat log && exit 1; }
seen=$(go run .)
echo "hashicorp/cronexpr 1.1.3 and robfig/cron 3.0.1: $seen"
[ "$seen" = "true false; 06T00 07T00 13T00 14T00 false false; true false; 08T00 15T00 22T00 29T00 false false; false" ]
