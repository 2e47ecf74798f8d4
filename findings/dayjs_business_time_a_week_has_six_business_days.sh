#!/usr/bin/env bash
# dayjs-business-time 1.0.4 (a plugin of Day.js): between two times outside of the working hours there is a business day
# too many. From one Monday to the next, as dates without a time, there are six.
#
# Guess: five, as from Monday at 10:00 to the next Monday at 10:00; and addBusinessDays(5) leads from one to the other.
# Seen: 6, and 2 from Monday to Tuesday, and 1 from Saturday to Sunday. From 08:00 to 18:00 of one day there are 2, and
# the difference in hours is 8, as it should be. With times from 09:00 to 17:00 all is right.
#
# Who it hurts: whoever counts days of leave, notice or delivery from dates: each is one too long, and a weekend has a
# working day.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" dayjs@1.11.23 dayjs-business-time@1.0.4
cat > "$work/seen.cjs" << 'PROGRAM'
const dayjs = require("dayjs");
const plugin = require("dayjs-business-time");

dayjs.extend(plugin.default || plugin);
const days = [
  ["2026-01-05", "2026-01-12"], ["2026-01-05T10:00", "2026-01-12T10:00"], ["2026-01-05", "2026-01-06"],
  ["2026-01-03", "2026-01-04"], ["2026-01-05T08:00", "2026-01-05T18:00"],
];
const seen = days.map(([start, end]) => dayjs(start).businessDaysDiff(dayjs(end)));
console.log(...seen, dayjs("2026-01-05").addBusinessDays(5).format("YYYY-MM-DD"));
PROGRAM
seen=$(cd "$work" && TZ=UTC node seen.cjs)
echo "dayjs-business-time 1.0.4, business days of a week (dates, and at 10:00), a day, a weekend and 8 to 18: $seen"
[ "$seen" = "6 5 2 1 2 2026-01-12" ]
