#!/usr/bin/env bash
# cloudevents 10.0.0 (the SDK for JavaScript): an event with the data 0 that is sent in one JSON text (structured mode)
# arrives without data.
#
# Guess: 0, as it was sent: the specification lets data be any JSON value, and the text has "data":0.
# Seen: HTTP.toEvent() gives undefined for 0, for false and for an empty text. 1, true and "a" arrive, and so does an
# object with a 0 in it.
#
# Who it hurts: counts, balances and switches that are sent as they are: "none left" and "off" look like an event that
# has nothing to say, and whoever keeps the last value keeps the one before.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" cloudevents@10.0.0
cat > "$work/seen.cjs" << 'PROGRAM'
const { CloudEvent, HTTP } = require("cloudevents");

const seen = [0, false, "", 1, true, "a", { left: 0 }].map((data) => {
  const sent = HTTP.structured(new CloudEvent({ type: "left", source: "/stock", data }));
  return `${JSON.stringify(JSON.parse(sent.body).data)} ${JSON.stringify(HTTP.toEvent(sent).data)}`;
});
console.log(seen.join(", "));
PROGRAM
seen=$(cd "$work" && node seen.cjs)
echo "cloudevents 10.0.0, data as it is sent and as it arrives: $seen"
[ "$seen" = '0 undefined, false undefined, "" undefined, 1 1, true true, "a" "a", {"left":0} {"left":0}' ]
