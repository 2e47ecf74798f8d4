#!/usr/bin/env bash
# hako/durafmt (durations in words for Go, of 8 June 2021): a negative duration that is printed a second time is "-".
# The third time it is right again.
#
# Guess: String() of minus an hour and a half is "-1 hour 30 minutes" each time, and Duration() stays what it was.
# Seen: "-1 hour 30 minutes", then "-", then "-1 hour 30 minutes". Each String() turns the sign of what Duration() has:
# after the first one it is an hour and a half.
#
# Who it hurts: whoever writes the same value into a log and into an answer: every second one has no time. Whoever
# calculates with Duration() after the text was made adds what was to be taken off.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"
	"time"

	"github.com/hako/durafmt"
)

func main() {
	late := durafmt.Parse(-90 * time.Minute)
	for range 3 {
		fmt.Printf("%v %q; ", late.Duration(), late.String())
	}
}
PROGRAM
{ go mod init example && go get github.com/hako/durafmt@v0.0.0-20210608085754-5c1018a4e16b; } > log 2>&1 ||
  { cat log && exit 1; }
seen=$(go run .)
echo "durafmt of 8 June 2021, Duration() and then String(), three times: $seen"
[ "$seen" = '-1h30m0s "-1 hour 30 minutes"; 1h30m0s "-"; -1h30m0s "-1 hour 30 minutes"; ' ]
