#!/usr/bin/env bash
# hledger 1.25 (of Debian 12, bookkeeping with recurring entries): "every 5th Friday of month" comes on 6 March, 3 April
# and 1 May 2026, and not on 30 January, which is one.
#
# Guess: 30 January and 29 May, the months that have five Fridays; or an error. The manual has every Nth WEEKDAYNAME of
# month, with no limit.
# Seen: of a month without a fifth Friday it makes the first one of the next month, also of December before the period.
# In January that takes the place of the fifth: it comes on 2 January and then on 6 March. The 4th is right.
#
# Who it hurts: budgets and forecasts for weeks that are paid extra five times: they are in the wrong months, eleven
# times a year instead of four.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 hledger=1.25-2+b5 libgmp10 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
seen=$(for nth in 5th 4th; do
  printf '~ every %s Friday of month from 2026-01-01 to 2026-06-01\n    extra  1\n    bank\n' "$nth" > plan.journal
  LD_LIBRARY_PATH=$libraries package/usr/bin/hledger --file plan.journal print --forecast=2026-01-01..2026-06-01 |
    sed -n 's/^2026-\([0-9-]*\).*/\1/p' | paste -s -d " "
done | paste -s -d ,)
echo "hledger 1.25, every 5th and every 4th Friday until June: $seen"
[ "$seen" = "01-02 03-06 04-03 05-01 05-29,01-23 02-27 03-27 04-24 05-22" ]
