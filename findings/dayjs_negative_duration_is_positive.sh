#!/usr/bin/env bash
# dayjs 1.11.23, with its plugin "duration": the sign before an ISO 8601 duration is lost. -PT1H is an hour, and not an
# hour less. luxon 3.7.2 has it right.
#
# Guess: -PT1H is minus an hour. dayjs writes that form itself: toISOString() of minus an hour is -PT1H.
# Seen: dayjs.duration("-PT1H") has 3600000 ms. What it has written for -3600000 ms comes back as 3600000. PT-1H is
# right.
#
# Who it hurts: programs that keep corrections, delays or offsets as durations in JSON: dayjs writes -PT1H there, reads
# it again, and adds an hour where one was to be taken off.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" dayjs@1.11.23 luxon@3.7.2
cat > "$work/seen.mjs" << 'PROGRAM'
import dayjs from "dayjs";
import duration from "dayjs/plugin/duration.js";
import { Duration } from "luxon";

dayjs.extend(duration);
const written = dayjs.duration(-3600000).toISOString();
const read = (text) => `${text} ${dayjs.duration(text).asMilliseconds()} ${Duration.fromISO(text).toMillis()}`;
console.log(`written ${written}; ${[written, "PT-1H"].map(read).join("; ")}`);
PROGRAM
seen=$(node "$work/seen.mjs")
echo "dayjs 1.11.23 and luxon 3.7.2: $seen"
[ "$seen" = "written -PT1H; -PT1H 3600000 -3600000; PT-1H -3600000 -3600000" ]
