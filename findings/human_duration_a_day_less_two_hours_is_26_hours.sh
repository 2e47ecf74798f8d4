#!/usr/bin/env bash
# DateTime::Format::Human::Duration 0.64 (of Debian 12, durations in words for Perl): a day less two hours is "1 day and
# 2 hours", and an hour less a quarter of an hour is "45 minutes".
#
# Guess: "22 hours", or "1 day and -2 hours": 22 hours after noon it is ten in the morning. An hour less a quarter is
# 45 minutes.
# Seen: each unit that the duration keeps for itself loses its sign. Minutes and hours are one unit, and so they are
# right. An hour less 30 seconds is "1 hour and 30 seconds", and a month less a day is "1 month and 1 day".
#
# Who it hurts: messages about leases and deadlines that are moved up: what was made shorter is told as longer, by twice
# as much as was taken away.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 libdatetime-format-human-duration-perl=0.64-2 libdatetime-perl libdatetime-locale-perl \
  libdatetime-timezone-perl libspecio-perl libb-hooks-endofscope-perl libclass-data-inheritable-perl \
  libclass-inspector-perl libclass-singleton-perl libdevel-stacktrace-perl libeval-closure-perl \
  libexception-class-perl libfile-sharedir-perl libmodule-implementation-perl libmodule-runtime-perl \
  libmro-compat-perl libnamespace-autoclean-perl libnamespace-clean-perl libpackage-stash-perl \
  libpackage-stash-xs-perl libparams-util-perl libparams-validate-perl libparams-validationcompiler-perl \
  librole-tiny-perl libsub-exporter-progressive-perl libsub-identify-perl libtry-tiny-perl libvariable-magic-perl \
  libxstring-perl libsub-quote-perl libdist-checkconflicts-perl 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package/usr/lib" -type d -path '*/perl5/5.36')
seen=$(perl -I package/usr/share/perl5 -I "$libraries" - << 'PROGRAM'
use strict;
use warnings;
use DateTime;
use DateTime::Duration;
use DateTime::Format::Human::Duration;

my $words = DateTime::Format::Human::Duration->new;
my $noon = DateTime->new(year => 2026, month => 11, day => 30, hour => 12);
for my $units ([days => 1, hours => -2], [hours => 1, minutes => -15], [hours => 1, seconds => -30],
               [months => 1, days => -1]) {
  my $duration = DateTime::Duration->new(@$units);
  print $words->format_duration($duration), " ", ($noon + $duration)->strftime("%d %b %T"), ", ";
}
PROGRAM
)
echo "DateTime::Format::Human::Duration 0.64, words, and 30 Nov 12:00:00 with the duration: $seen"
[ "$seen" = "1 day and 2 hours 01 Dec 10:00:00, 45 minutes 30 Nov 12:45:00, 1 hour and 30 seconds 30 Nov 12:59:30, \
1 month and 1 day 29 Dec 12:00:00, " ]
