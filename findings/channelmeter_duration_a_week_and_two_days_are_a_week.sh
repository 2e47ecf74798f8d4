#!/usr/bin/env bash
# ChannelMeter/iso8601duration of February 2015, its only version (durations of ISO 8601 for Go): P1W2D is a week. What
# stands beside the weeks, before the P or behind a point is dropped.
#
# Guess: 216 hours for P1W2D, -90 minutes for -PT1H30M and 90 for PT1.5H; or an error, as there is for P1M.
# Seen: 168 hours, 90 minutes, and nothing at all for PT1.5H and P0.5D, each without an error. The texts are searched
# for a duration of whole numbers, or for one of weeks, and the rest is not looked at: "every PT5M" is five minutes.
#
# Who it hurts: terms, leases and retention that come from other programs: they are shorter than written or nothing, and
# an offset back in time goes forward.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	duration "github.com/ChannelMeter/iso8601duration"
)

func main() {
	for _, text := range []string{"P1W2D", "-PT1H30M", "PT1.5H", "P0.5D", "every PT5M", "P1M"} {
		if length, err := duration.FromString(text); err == nil {
			fmt.Print(length.ToDuration(), ", ")
		} else {
			fmt.Print(err)
		}
	}
}
PROGRAM
version=v0.0.0-20150204201828-8da3af7a2a61
{ go mod init example && go get "github.com/ChannelMeter/iso8601duration@$version"; } > log 2>&1 ||
  { cat log && exit 1; }
seen=$(go run .)
echo "iso8601duration of 2015, P1W2D, -PT1H30M, PT1.5H, P0.5D, every PT5M and P1M: $seen"
[ "$seen" = "168h0m0s, 1h30m0s, 0s, 0s, 5m0s, no months allowed" ]
