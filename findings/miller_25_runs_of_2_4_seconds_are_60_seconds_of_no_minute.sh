#!/usr/bin/env bash
# Miller 6.6.0 (of Debian 12, CSV and JSON Lines on the command line): the sum of 25 runs of 2.4 seconds is written as
# "00:00:60.000000", and 1,800 runs of 1.7 seconds are "00:50:60.000000".
#
# Guess: 00:01:00.000000 and 00:51:00.000000. The sum is 59.99999999999998, and to the six digits that it writes that is
# a minute.
# Seen: fsec2hms() and fsec2dhms() round the seconds and do not carry. 59.9999999, as it stands, is 60 seconds too. An
# exact minute is 00:01:00.000000.
#
# Who it hurts: totals of running times that go on to a database or a sheet: 00:50:60 is no time there.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 miller=6.6.0-2+b3 2> /dev/null
dpkg-deb --extract miller_*.deb package
mlr=package/usr/bin/mlr
total="@sum += \$seconds; end { print fsec2hms(@sum) . \" \" . fsec2dhms(@sum) }"
for runs in "25 2.4" "1800 1.7" "1 59.9999999" "1 60.0"; do
  read -r count seconds <<< "$runs"
  "$mlr" seqgen --start 1 --stop "$count" "then" put -q "\$seconds = $seconds; $total"
done > seen
seen=$(paste -s -d , seen)
echo "Miller 6.6.0, 25 times 2.4 seconds, 1800 times 1.7, 59.9999999 and 60: $seen"
[ "$seen" = "00:00:60.000000 60.000000s,00:50:60.000000 50m60.000000s,00:00:60.000000 60.000000s,\
00:01:00.000000 1m00.000000s" ]
