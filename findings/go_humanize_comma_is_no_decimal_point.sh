#!/usr/bin/env bash
# dustin/go-humanize 1.1.0 (for Go): ParseBytes drops commas wherever they stand. "1,5 GB" is 15 GB, and "0,25 TB" is 25
# TB.
#
# Guess: an error, as for "1_000" and "1 000 KB", since that comma cannot divide thousands.
# Seen: 15000000000 and 25000000000000. "1.5 GB" is 1500000000.
#
# Who it hurts: whoever sets a limit of memory, disk or upload where a comma is the decimal point. The limit is ten or a
# hundred times what was meant, and nothing complains until the disk is full.
set -euo pipefail
work=$(mktemp --directory)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
cd "$work"
cat > main.go << 'PROGRAM'
package main

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

func main() {
	for _, text := range []string{"1,5 GB", "0,25 TB", "1.5 GB", "1_000", "1 000 KB"} {
		size, err := humanize.ParseBytes(text)
		fmt.Print(size, " ", err != nil, "; ")
	}
}
PROGRAM
{ go mod init example && go get github.com/dustin/go-humanize@v1.1.0; } > log 2>&1 || { cat log && exit 1; }
seen=$(go run .)
echo "go-humanize 1.1.0, 1,5 GB, 0,25 TB, 1.5 GB, 1_000 and 1 000 KB: $seen"
[ "$seen" = "15000000000 false; 25000000000000 false; 1500000000 false; 0 true; 0 true; " ]
