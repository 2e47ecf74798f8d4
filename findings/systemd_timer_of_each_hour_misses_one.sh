#!/usr/bin/env bash
# systemd 252 (of Debian 12): a calendar expression that names a time zone misses the second of the two equal hours when
# summer time ends. With UTC it has every hour.
#
# Guess: *:00:00 Europe/Berlin elapses once an hour on each day of the year, for an hour of the zone's clock begins once
# an hour, as cron's "every hour" has it.
# Seen: after 00:15 UTC of 2026-10-25 (02:15 in Berlin) the next is 02:00 UTC; 01:00 UTC, when the clock in Berlin shows
# 02:00 for the second time, is left out. A timer of every quarter of an hour (*:0/15:00) pauses from 00:45 to 02:00.
#
# Who it hurts: timers with a zone in OnCalendar that fetch, bill or check something each hour: once a year an hour is
# not worked on, or an alarm about silence rings.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 systemd=252.38-1~deb12u1 libsystemd-shared=252.38-1~deb12u1 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done

times() { # EXPRESSION: when it elapses on the morning of the change, in UTC
  LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu/systemd TZ=UTC package/usr/bin/systemd-analyze calendar \
    --base-time='2026-10-25 00:15 UTC' --iterations=3 "$1" |
    sed --quiet --regexp-extended 's/^ *(Next elapse|Iter).* ([0-9:]+) UTC$/\2/p' | paste -s -d ' '
}
zoned=$(times '*:00:00 Europe/Berlin')
utc=$(times '*:00:00 UTC')
echo "systemd 252: each hour in Berlin: $zoned; each hour in UTC: $utc"
[ "$zoned" = "02:00:00 03:00:00 04:00:00" ]
[ "$utc" = "01:00:00 02:00:00 03:00:00" ]
