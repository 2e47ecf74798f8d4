#!/usr/bin/env bash
# bytes 3.1.2 (for JavaScript; Express reads its limits with it): of a size whose unit it does not know it takes the
# number as bytes. "10m" and "10MiB" are ten bytes, and "1,5gb" is one.
#
# Guess: null, which it promises upon an error, and which "m" alone gives.
# Seen: 10, 10 and 1. "10mb" is 10485760.
#
# Who it hurts: whoever sets a limit as Nginx, Docker or Kubernetes write it. A service with "10m" starts, and refuses
# each request whose body is longer than ten bytes.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" bytes@3.1.2
cat > "$work/seen.mjs" << 'PROGRAM'
import bytes from "bytes";

console.log(...["10m", "10MiB", "1,5gb", "m", "10mb"].map((text) => bytes(text)));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "bytes 3.1.2: 10m, 10MiB, 1,5gb, m and 10mb are $seen"
[ "$seen" = "10 10 1 null 10485760" ]
