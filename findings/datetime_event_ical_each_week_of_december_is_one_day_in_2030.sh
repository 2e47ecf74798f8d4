#!/usr/bin/env bash
# DateTime::Event::ICal 0.13 (of Debian 12, recurring dates for Perl): "each week in December" from Monday, 2 November
# 2026, comes on 2 December of a year in which that is a Monday: in 2030, 2041 and 2047.
#
# Guess: the Mondays of December 2026: the 7th, 14th, 21st and 28th, as RFC 5545 has FREQ=WEEKLY;BYMONTH=12 (a month
# limits it, and the day of the week is that of the start).
# Seen: the day of the month of the start, the 2nd, must fit, too; so it is with BYDAY=MO in addition. FREQ=HOURLY in
# December has the hours of the 2nd only. FREQ=DAILY is right.
#
# Who it hurts: seasonal schedules, such as a weekly run in the months of the peak: it never comes, or years later.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 libdatetime-event-ical-perl=0.13-2 libdatetime-event-recurrence-perl libdatetime-set-perl \
  libset-infinite-perl libdatetime-perl libdatetime-locale-perl libdatetime-timezone-perl libspecio-perl \
  libb-hooks-endofscope-perl libclass-data-inheritable-perl libclass-inspector-perl libclass-singleton-perl \
  libdevel-stacktrace-perl libeval-closure-perl libexception-class-perl libfile-sharedir-perl \
  libmodule-implementation-perl libmodule-runtime-perl libmro-compat-perl libnamespace-autoclean-perl \
  libnamespace-clean-perl libpackage-stash-perl libpackage-stash-xs-perl libparams-util-perl libparams-validate-perl \
  libparams-validationcompiler-perl librole-tiny-perl libsub-exporter-progressive-perl libsub-identify-perl \
  libtry-tiny-perl libvariable-magic-perl libxstring-perl libsub-quote-perl libdist-checkconflicts-perl 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package/usr/lib" -type d -path '*/perl5/5.36')
seen=$(perl -I package/usr/share/perl5 -I "$libraries" - << 'PROGRAM'
use strict;
use warnings;
use DateTime;
use DateTime::Event::ICal;

sub days { # the first days of a rule
  my %rule = @_;
  my $start = DateTime->new(year => 2026, month => 11, day => 2, hour => 9);
  my $iterator = DateTime::Event::ICal->recur(dtstart => $start, count => 3, bymonth => [12], %rule)->iterator;
  print join(", ", map { $iterator->next->strftime("%a %d %b %Y %Hh") } 1 .. 3), "; ";
}
days(freq => "weekly");
days(freq => "weekly", byday => ["mo"]);
days(freq => "hourly", interval => 12);
days(freq => "daily");
PROGRAM
)
echo "DateTime::Event::ICal 0.13, weekly, weekly on Mondays, every 12 hours and daily in December: $seen"
[ "$seen" = "Mon 02 Dec 2030 09h, Mon 02 Dec 2041 09h, Mon 02 Dec 2047 09h; \
Mon 02 Dec 2030 09h, Mon 02 Dec 2041 09h, Mon 02 Dec 2047 09h; \
Wed 02 Dec 2026 09h, Wed 02 Dec 2026 21h, Thu 02 Dec 2027 09h; \
Tue 01 Dec 2026 09h, Wed 02 Dec 2026 09h, Thu 03 Dec 2026 09h; " ]
