#!/usr/bin/env bash
# pomeranian-durations 1.11.4 (ISO 8601 durations for JavaScript): of an interval of PostgreSQL in its verbose style
# only the last digit of each number is read. 45 minutes are 5, and 30 minutes are nothing.
#
# Guess: PT45M for "@ 45 mins", PT12H for "@ 12 hours", and PT6.5S or an error for "@ 6.5 secs".
# Seen: PT5M, PT2H and PT5S. "@ 30 mins" and "@ 10 days" are P, which is no duration at all. "@ 5 mins 6 secs" is right,
# and so are 12 hours and 45 minutes in PostgreSQL's own style.
#
# Who it hurts: whoever shows or adds up how long jobs took from a database with this style: no value is refused, and
# trials with small numbers are right.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" pomeranian-durations@1.11.4
cat > "$work/seen.cjs" << 'PROGRAM'
const { fromPostgres, fromPostgresVerbose } = require("pomeranian-durations");

const verbose = ["@ 45 mins", "@ 12 hours", "@ 6.5 secs", "@ 30 mins", "@ 10 days", "@ 5 mins 6 secs"];
console.log(...verbose.map(fromPostgresVerbose), fromPostgres("12:45:00"));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "pomeranian-durations 1.11.4: $seen"
[ "$seen" = "PT5M PT2H PT5S P P PT5M6S PT12H45M" ]
