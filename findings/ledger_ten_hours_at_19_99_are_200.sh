#!/usr/bin/env bash
# Ledger 3.3.0 (of Debian 12, bookkeeping in text files): ten hours at 19.99 euros are shown as "EUR-200" at the bank.
# If the amount is written out, it is "-199.90 EUR".
#
# Guess: -199.90 EUR both times: that is what it counts, and 19.99 EUR is how the journal writes euros.
# Seen: a price does not count for how a commodity is shown. As long as euros are only in prices, they have no cents,
# and the symbol changes sides. Ten dollars at 1.105 are EUR-11. With one amount of euros anywhere in the journal, all
# are right.
#
# Who it hurts: bills and reports from journals of hours and prices: sums are off by up to half a euro, and they do not
# add up.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 ledger=3.3.0-3 libboost-filesystem1.74.0 libboost-iostreams1.74.0 libboost-python1.74.0 \
  libboost-regex1.74.0 libgmp10 libicu72 libmpfr6 libpython3.11 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name 'lib*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
seen=$(for journal in "10 h @ 19.99 EUR|" "10 h @ 19.99 EUR|  -199.90 EUR" "10 USD @ 1.105 EUR|"; do
  printf '2026-11-30 Work\n  Customer  %s\n  Bank%s\n' "${journal%|*}" "${journal#*|}" > journal.dat
  LD_LIBRARY_PATH=$libraries package/usr/bin/ledger --args-only --file journal.dat balance --no-total ^Bank
done | sed 's/^ *//' | paste -s -d ,)
echo "Ledger 3.3.0, ten hours, the same with the amount written out, and ten dollars at 1.105: $seen"
[ "$seen" = "EUR-200  Bank,-199.90 EUR  Bank,EUR-11  Bank" ]
