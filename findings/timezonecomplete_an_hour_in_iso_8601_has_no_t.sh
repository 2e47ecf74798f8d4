#!/usr/bin/env bash
# timezonecomplete 5.15.1 (dates and durations for JavaScript): toIsoString() leaves out the T of hours, seconds and
# milliseconds. An hour is P1H.
#
# Guess: PT1H. The documentation says that it is ISO 8601 and shows P1M for a month and PT1M for a minute.
# Seen: P1H, P90S and P1.500S, and only PT90M has its T. iso8601-duration 2.1.4, which reads PT90M, refuses the others,
# and the constructor of timezonecomplete itself reads none of the four.
#
# Who it hurts: whoever writes timeouts or deadlines to a configuration or a message: those in minutes arrive, and the
# others are an error at the other end.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" timezonecomplete@5.15.1 iso8601-duration@2.1.4
cat > "$work/seen.cjs" << 'PROGRAM'
const { Duration, hours, milliseconds, minutes, seconds } = require("timezonecomplete");
const { parse, toSeconds } = require("iso8601-duration");

const read = (reader) => {
  try {
    return reader();
  } catch {
    return "refused";
  }
};
console.log([hours(1), minutes(90), seconds(90), milliseconds(1500)].map((duration) => {
  const text = duration.toIsoString();
  return [text, read(() => toSeconds(parse(text))), read(() => new Duration(text).seconds())].join(" ");
}).join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "timezonecomplete 5.15.1, text, read by iso8601-duration 2.1.4 and by itself: $seen"
[ "$seen" = "P1H refused refused, PT90M 5400 refused, P90S refused refused, P1.500S refused refused" ]
