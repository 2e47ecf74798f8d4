#!/usr/bin/env bash
# @breejs/later 4.2.0 (which Bree uses for its intervals in words): "every 90 minutes" is each hour, and "every 45
# minutes" is at :00 and :45.
#
# Guess: the runs are 90 minutes apart, or the text is an error (the result has a field for errors).
# Seen: 00:00, 01:00, 02:00 and 03:00, and error is -1, which is none. It is a step within an hour, as */90 in a
# crontab.
#
# Who it hurts: whoever asks for a longer interval in plain words to spare a service or to leave a run its time: it is
# called half as often again, and the next run begins while the last one still works.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @breejs/later@4.2.0
cat > "$work/seen.mjs" << 'PROGRAM'
import later from "@breejs/later";

const seen = [90, 45].map((minutes) => {
  const parsed = later.parse.text(`every ${minutes} minutes`);
  const dates = later.schedule(parsed).next(4, new Date("2026-03-01T00:00:00Z"));
  return `${parsed.error} ${dates.map((date) => date.toISOString().slice(11, 16)).join(" ")}`;
});
console.log(seen.join("; "));
PROGRAM
seen=$(node "$work/seen.mjs")
echo "later 4.2.0, every 90 and every 45 minutes: $seen"
[ "$seen" = "-1 00:00 01:00 02:00 03:00; -1 00:00 00:45 01:00 01:45" ]
