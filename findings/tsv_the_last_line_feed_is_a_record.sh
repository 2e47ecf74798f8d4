#!/usr/bin/env bash
# tsv 0.2.0 (TSV and CSV for JavaScript): the line feed at the end of a file makes one record more, and lines that end
# in CRLF have an empty record after each.
#
# Guess: two records of a file with two rows, however its lines end. A line feed after the last row is what most
# programs write.
# Seen: two without it, three with it, and six with CRLF. The records too many have an empty text in the first column
# and lack the others. The CSV of the package does the same.
#
# Who it hurts: whoever counts, bills or stores the records of a file: each file has an order without a number, and
# files from Windows one per line.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" tsv@0.2.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { TSV, CSV } = require("tsv");

const lines = ["order\tcount", "A1\t2", "A2\t5"];
const texts = [lines.join("\n"), lines.join("\n") + "\n", lines.join("\r\n") + "\r\n"];
const counts = texts.map((text) => [TSV.parse(text), CSV.parse(text.replaceAll("\t", ","))].map((rows) => rows.length));
console.log(counts.map((pair) => pair.join(" ")).join(", "), JSON.stringify(TSV.parse(texts[1]).at(-1)));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "tsv 0.2.0, records of two rows in TSV and CSV, without a last line feed, with it, with CRLF, and the last: $seen"
[ "$seen" = '2 2, 3 3, 6 6 {"order":""}' ]
