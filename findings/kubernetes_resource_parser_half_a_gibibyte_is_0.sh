#!/usr/bin/env bash
# kubernetes-resource-parser 0.1.0 (for JavaScript): a quantity of memory with a fraction loses the fraction and its
# unit. 1.5Gi is one byte, 0.5Gi is none. Of CPU the units of micro and nano are ignored: 100u is a hundred cores.
#
# Guess: the numbers that Kubernetes takes them for: 1610612736, 536870912, 129000000, and 0.0001 cores.
# Seen: memoryParser() has 1 for 1.5Gi, 0 for 0.5Gi and 129 for 129e6. cpuParser() has 100 for 100u, as for 100. 129Mi,
# 1G and 250m are right.
#
# Who it hurts: whoever adds up requests and limits for a report, a quota or a bill: a pod of 1.5Gi counts as a byte,
# and the usage that the metrics API gives in nano cores is a billion times too large.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" kubernetes-resource-parser@0.1.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { cpuParser, memoryParser } = require("kubernetes-resource-parser");

console.log(...["1.5Gi", "0.5Gi", "129e6", "129Mi", "1G"].map(memoryParser), ...["100u", "5n", "250m"].map(cpuParser));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "kubernetes-resource-parser 0.1.0: $seen"
[ "$seen" = "1 0 129 135266304 1000000000 100 5 0.25" ]
