#!/usr/bin/env bash
# Locale::Currency::Format 1.35 (of Debian 12, amounts of each currency as text for Perl): 1234.50 dinars of Algeria are
# "123450 DZD". The point is lost and the decimals stay. Dinars of Iraq and of Tunisia are a thousand times as many.
#
# Guess: "1,234.50 DZD" or with another point; or, if the format is not known, an error, as for a code that is unknown.
# Seen: 123450 DZD, 1234500 IQD and 1234500 TND, and half a dinar is "050 DZD" and "0500 TND". These currencies have a
# number of decimals in its table and no sign for the point. Those of Jordan and Kuwait are right.
#
# Who it hurts: invoices and statements in these currencies: the text is a valid amount, a hundred or a thousand times
# what is due.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 liblocale-currency-format-perl=1.35-3 2> /dev/null
dpkg-deb --extract liblocale-currency-format-perl_*.deb package
seen=$(perl -I package/usr/share/perl5 - << 'PROGRAM'
use strict;
use warnings;
use Locale::Currency::Format;

for my $currency (qw(DZD IQD TND JOD KWD EUR)) {
  print join(" or ", map { currency_format($currency, $_) } 1234.5, 0.5), "; ";
}
PROGRAM
)
echo "Locale::Currency::Format 1.35, 1234.50 and 0.50: $seen"
[ "$seen" = "123450 DZD or 050 DZD; 1234500 IQD or 0500 IQD; 1234500 TND or 0500 TND; \
1,234.500 JOD or 0.500 JOD; 1,234.500 KWD or 0.500 KWD; 1.234,50 EUR or 0,50 EUR; " ]
