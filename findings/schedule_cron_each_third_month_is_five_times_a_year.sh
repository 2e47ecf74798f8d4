#!/usr/bin/env bash
# Schedule::Cron 1.05 (of Debian 12, a cron for Perl): "0 0 1 */3 *" comes five times a year: on the first of January,
# March, June, September and December.
#
# Guess: four times, in January, April, July and October, as in crontab(5): an asterisk stands for first-last, which
# the documentation has as 1-12, and 1-12/3 is what its own parser makes these four months of.
# Seen: */3 is 0, 3, 6, 9 and 12, and the month 0 becomes January. 1-12/3 is right. So it is with days: */10 is the 1st,
# 10th, 20th and 30th, not the 1st, 11th, 21st and 31st, and */2 has the 1st and the 2nd.
#
# Who it hurts: whoever moves a crontab here: what is due each quarter runs in December and again in January, and the
# runs of the other quarters are a month early.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 libschedule-cron-perl=1.05-1 libtime-parsedate-perl 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
seen=$(TZ=UTC perl -I package/usr/share/perl5 - << 'PROGRAM'
use strict;
use warnings;
use POSIX qw(strftime);
use Schedule::Cron;
use Time::Local;

my $cron = Schedule::Cron->new(sub { });
sub days { # LINE UNTIL: the days from 1 January 2027
  my ($line, @until) = @_;
  my ($time, $until) = (timegm(0, 0, 0, 31, 11, 2026), timegm(0, 0, 0, @until));
  my @days;
  while (($time = $cron->get_next_execution_time($line, $time)) < $until) {
    push @days, strftime("%d %b", gmtime $time);
  }
  return join(", ", @days) . "; ";
}
print days("0 0 1 */3 *", 1, 0, 2028), days("0 0 1 1-12/3 *", 1, 0, 2028);
print days("0 0 */10 * *", 1, 1, 2027), days("0 0 */2 * *", 9, 0, 2027);
PROGRAM
)
echo "Schedule::Cron 1.05, months */3 and 1-12/3, days */10 and */2: $seen"
[ "$seen" = "01 Jan, 01 Mar, 01 Jun, 01 Sep, 01 Dec; 01 Jan, 01 Apr, 01 Jul, 01 Oct; \
01 Jan, 10 Jan, 20 Jan, 30 Jan; 01 Jan, 02 Jan, 04 Jan, 06 Jan, 08 Jan; " ]
