#!/usr/bin/env bash
# mapstructure 2.5.0 (go-viper's, which Viper and koanf fill their structs with): a number that is too large for its
# field wraps around, without an error. A negative one for an unsigned field is refused.
#
# Guess: 300 for a uint8 is an error, as -1 is, and as encoding/json has it.
# Seen: 300 is 44, 70000 for a uint16 is 4464, and 200 for an int8 is -56. -1 for a uint8 "overflows uint".
#
# Who it hurts: whoever has a port, a percentage or a number of retries in a small type. A port 70000 listens on 4464,
# and a limit of 256 is 0.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	"github.com/go-viper/mapstructure/v2"
)

func main() {
	for _, settings := range []map[string]any{{"limit": 300}, {"port": 70000}, {"step": 200}, {"limit": -1}} {
		var read struct {
			Limit uint8
			Port  uint16
			Step  int8
		}
		failed := mapstructure.Decode(settings, &read) != nil
		fmt.Print(read.Limit, " ", read.Port, " ", read.Step, " ", failed, "; ")
	}
}
PROGRAM
{ go mod init example && go get github.com/go-viper/mapstructure/v2@v2.5.0; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "mapstructure 2.5.0, 300, 70000, 200 and -1: the uint8, the uint16, the int8, and whether it fails: $seen"
[ "$seen" = "44 0 0 false; 0 4464 0 false; 0 0 -56 false; 0 0 0 true; " ]
