#!/usr/bin/env bash
# systemd 252 (of Debian 12): a daily calendar expression in a time zone has no run on the day on which summer time
# begins, if its time is in the hour that is skipped. cron, croniter and cron-parser run it an hour later or at its end.
#
# Guess: *-*-* 02:30:00 Europe/Berlin elapses once a day. On 2026-03-29, when the clock goes from 02:00 to 03:00, it is
# at 03:00 or 03:30.
# Seen: after 2026-03-28 12:00 UTC the next is 2026-03-30 00:30 UTC. There is none on the 29th. 03:30 has its run.
#
# Who it hurts: the nightly job of a timer, such as the close of a day: one day a year is never closed. Persistent=true
# does not help, for no run was missed.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 systemd=252.38-1~deb12u1 libsystemd-shared=252.38-1~deb12u1 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done

next() { # EXPRESSION: the next time, in UTC, on the day before the change
  LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu/systemd TZ=UTC package/usr/bin/systemd-analyze calendar \
    --base-time='2026-03-28 12:00 UTC' --iterations=1 "$1" |
    sed --quiet --regexp-extended 's/^ *Next elapse: (.*) UTC$/\1/p'
}
missing=$(next '*-*-* 02:30:00 Europe/Berlin')
later=$(next '*-*-* 03:30:00 Europe/Berlin')
echo "systemd 252: 02:30 in Berlin: $missing UTC; 03:30 in Berlin: $later UTC"
[ "$missing" = "Mon 2026-03-30 00:30:00" ]
[ "$later" = "Sun 2026-03-29 01:30:00" ]
