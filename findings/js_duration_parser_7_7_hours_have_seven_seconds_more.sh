#!/usr/bin/env bash
# js-duration-parser 1.1.3 (texts like 3h 30m, for JavaScript): compose() adds or takes seconds where hours or days have
# a decimal. 7.7 hours are 7h 42m 7s, and 1.1 days 1d 2h 24m 8s.
#
# Guess: 7h 42m and 1d 2h 24m, as 1.5 hours are 1h 30m. A binary fraction may be off by far less than a second.
# Seen: seven and eight seconds more; 7.6 hours and 8.1 hours are a second less, 7h 35m 59s and 8h 5m 59s. parse() of
# the text has the wrong seconds too.
#
# Who it hurts: time sheets and reports that keep hours with a decimal and show or store texts: the days of a month do
# not add up to its hours, and a price per second is wrong.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" js-duration-parser@1.1.3
cat > "$work/seen.cjs" << 'PROGRAM'
const module_ = require("js-duration-parser");

const parser = new (module_.default ?? module_)();
const texts = [1.5, 7.6, 7.7, 8.1].map((hours) => parser.compose(hours, "h")).concat(parser.compose(1.1, "d"));
console.log(texts.join(", ") + ";", parser.parse(texts[2], "s"));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "js-duration-parser 1.1.3, 1.5 h, 7.6 h, 7.7 h, 8.1 h and 1.1 d as texts, and the seconds of 7.7 h: $seen"
[ "$seen" = "1h 30m, 7h 35m 59s, 7h 42m 7s, 8h 5m 59s, 1d 2h 24m 8s; 27727" ]
