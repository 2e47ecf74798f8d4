#!/usr/bin/env bash
# docker/go-units 0.5.0 (sizes for Go): FromHumanSize() takes GiB for GB, and RAMInBytes() takes GB for GiB. The letter
# i counts for nothing.
#
# Guess: 1GiB is 1073741824 with both: that is what the i is for. The documentation says that the first one takes sizes
# of SI, as 44kB, and the second one binary ones; a size of the other kind is an error, or what it says.
# Seen: 1GiB is 1000000000 with FromHumanSize(), and 1GB is 1073741824 with RAMInBytes(). What its own BytesSize()
# writes, FromHumanSize() reads as less: 1.5GiB comes back as 1500000000.
#
# Who it hurts: limits and quotas of disks: 7 per cent of a GiB, 10 per cent of a TiB are missing.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	"github.com/docker/go-units"
)

func main() {
	for _, text := range []string{"1GiB", "1GB", units.BytesSize(1.5 * (1 << 30))} {
		human, err := units.FromHumanSize(text)
		ram, other := units.RAMInBytes(text)
		fmt.Print(text, " ", human, err, " ", ram, other, "; ")
	}
}
PROGRAM
{ go mod init example && go get github.com/docker/go-units@v0.5.0; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "go-units 0.5.0, FromHumanSize() and RAMInBytes(): $seen"
[ "$seen" = "1GiB 1000000000 <nil> 1073741824 <nil>; 1GB 1000000000 <nil> 1073741824 <nil>; \
1.5GiB 1500000000 <nil> 1610612736 <nil>; " ]
