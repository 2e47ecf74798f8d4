#!/usr/bin/env bash
# human-interval 2.0.1 (for JavaScript; Agenda and Bree read intervals with it): "an hour" is 0 ms, and so are "half an
# hour" and "every 5 minutes".
#
# Guess: "an hour" is 3600000, as "hour" and "one hour" are, or NaN, as "1h" is.
# Seen: 0, 0, 0, and 3600000 for "hour". "one and a half hours" is one hour.
#
# Who it hurts: whoever writes an interval as one says it. A job that repeats "every 5 minutes" has no interval: a timer
# with it fires at once, again and again.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" human-interval@2.0.1
cat > "$work/seen.mjs" << 'PROGRAM'
import read from "human-interval";

const texts = ["an hour", "half an hour", "every 5 minutes", "hour", "one hour", "one and a half hours", "1h"];
console.log(...texts.map((text) => read(text)));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "human-interval 2.0.1: $seen"
[ "$seen" = "0 0 0 3600000 3600000 3600000 NaN" ]
