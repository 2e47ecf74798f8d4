#!/usr/bin/env bash
# dayjs 1.11.23, with its plugins "utc" and "timezone": a day later, over a change of the clocks, is an hour off, and
# the end of a month, too, depends on the zone of the machine. luxon 3.7.2 has both right.
#
# Guess: noon in Berlin of 24 October 2026 plus a day is noon again, 11:00 UTC, and October ends at 22:59:59.999 UTC,
# wherever the program runs.
# Seen: on a machine in UTC the next noon is 10:00 UTC, written as 12:00+02:00, an offset that Berlin no longer has. On
# a machine in New York October in Berlin ends at 23:59:59.999 UTC, an hour into November. In Berlin both are right.
#
# Who it hurts: programs that end a billing period or set the next run in a customer's zone. They are right on the
# developer's machine, and an hour off on the server.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" dayjs@1.11.23 luxon@3.7.2
cat > "$work/seen.mjs" << 'PROGRAM'
import dayjs from "dayjs";
import timezone from "dayjs/plugin/timezone.js";
import utc from "dayjs/plugin/utc.js";
import { DateTime } from "luxon";

dayjs.extend(utc);
dayjs.extend(timezone);
const day = dayjs.tz("2026-10-24 12:00", "Europe/Berlin");
const right = DateTime.fromISO("2026-10-24T12:00", { zone: "Europe/Berlin" });
const hour = (date) => date.toISOString().slice(8, 13);
console.log(hour(day.add(1, "day")), hour(right.plus({ days: 1 }).toJSDate()),
  hour(day.endOf("month")), hour(right.endOf("month").toJSDate()));
PROGRAM
expect() { # ZONE SEEN
  local seen
  seen=$(TZ=$1 node "$work/seen.mjs")
  echo "dayjs 1.11.23 and luxon 3.7.2 in $1: next noon $seen"
  [ "$seen" = "$2" ] || { echo "expected: $2" && exit 1; }
}
expect UTC "25T10 25T11 31T22 31T22"
expect America/New_York "25T10 25T11 31T23 31T22"
expect Europe/Berlin "25T11 25T11 31T22 31T22"
