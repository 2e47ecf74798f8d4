#!/usr/bin/env bash
# Business::Hours 0.13 (of Debian 12, business hours of a period for Perl): a holiday of each year, such as 12-25, is
# one in the first and in the last year of the period only. Between them it is worked.
#
# Guess: the days from 24 to 26 December are free in each year that the period has.
# Seen: the period is 2026 to 2029. Of 20 to 31 December, 2026 has 63 hours, as it should. 2027 has 90 and 2028 has 72,
# where a period of that year alone has 81 and 54. With the year, as 2028-12-25, they are free.
#
# Who it hurts: deadlines and capacity of contracts that run for more than two years: each year between has a day or
# two more of nine hours than it is worked.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 libbusiness-hours-perl=0.13-2 libset-intspan-perl=1.19-3 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
seen=$(TZ=UTC perl -I package/usr/share/perl5 - << 'PROGRAM'
use strict;
use warnings;
use Business::Hours;
use Time::Local;

sub hours_of_december { # FIRST LAST YEAR: of its last 12 days, with the hours of the years from FIRST to LAST
  my ($first, $last, $year) = @_;
  my $hours = Business::Hours->new;
  $hours->holidays(qw(12-24 12-25 12-26));
  $hours->for_timespan(Start => timelocal(0, 0, 0, 1, 0, $first), End => timelocal(59, 59, 23, 31, 11, $last));
  return $hours->between(timelocal(0, 0, 0, 20, 11, $year), timelocal(59, 59, 23, 31, 11, $year)) / 3600;
}
print join(" ", map { hours_of_december(2026, 2029, $_) } 2026 .. 2029), ", ";
print join(" ", map { hours_of_december($_, $_, $_) } 2026 .. 2029);
PROGRAM
)
echo "Business::Hours 0.13, hours of the last days of 2026 to 2029, of all four years and of each alone: $seen"
[ "$seen" = "63 90 72 45, 63 81 54 45" ]
