#!/usr/bin/env bash
# dateutils 0.4.10 (of Debian 12, differences of dates in shell scripts): from 31 January to 1 March it is a month and
# 62 days.
#
# Guess: a month and a day, for a month after 31 January is 28 February in the same tool; or no month and 29 days.
# Seen: datediff with months and days in its format says 1 and 62, to 2 March 1 and 63, and to 3 March 1 and 0. With the
# days alone these are 29, 30 and 31 days. From 28 January to 1 March it is a month and a day.
#
# Who it hurts: rents and subscriptions that end at the start of March: two months of days are charged that never were.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 dateutils=0.4.10-1 2> /dev/null
dpkg-deb --extract dateutils_*.deb package
tools=package/usr/bin
seen=$("$tools/dateutils.dadd" 2026-01-31 1mo)
for dates in "01-31 03-01" "01-31 03-02" "01-31 03-03" "01-28 03-01"; do
  read -r from to <<< "$dates"
  months=$("$tools/dateutils.ddiff" "2026-$from" "2026-$to" --format "%m and %d")
  seen="$seen, $months of $("$tools/dateutils.ddiff" "2026-$from" "2026-$to" --format %d)"
done
echo "dateutils 0.4.10, a month after 31 January, and months and days of all days to March: $seen"
[ "$seen" = "2026-02-28, 1 and 62 of 29, 1 and 63 of 30, 1 and 0 of 31, 1 and 1 of 32" ]
