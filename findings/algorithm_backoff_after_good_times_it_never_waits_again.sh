#!/usr/bin/env bash
# Algorithm::Backoff 0.009 (of Debian 12, waits between attempts for Perl): with the strategy MILD, once enough calls
# have gone well, no failure makes it wait any more.
#
# Guess: waits of 1, 2, 4 and 8 seconds for four failures, then less and less, but never below the second of
# initial_delay: the documentation has it in its formula for the wait after a success. So 2, 4 and 8 for new failures.
# Seen: after successes the wait goes down to 0, and each failure multiplies that: 0, 0 and 0 for good. With MIMD, which
# halves, it is 1, 2 and 4. A min_delay avoids it, which is 0 if not given.
#
# Who it hurts: clients of a service that was well for some time: at its next outage they call it again and again
# without a pause.
set -euo pipefail
command -v perl > /dev/null || { echo "skipped: there is no perl" && exit 77; }
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 libalgorithm-backoff-perl=0.009-3 2> /dev/null
dpkg-deb --extract libalgorithm-backoff-perl_*.deb package
cat > seen.pl << 'PROGRAM'
use strict;
use warnings;
use Algorithm::Backoff::MILD;
use Algorithm::Backoff::MIMD;

for my $backoff (
    Algorithm::Backoff::MILD->new(
        initial_delay => 1, delay_multiple_on_failure => 2, delay_increment_on_success => -3),
    Algorithm::Backoff::MIMD->new(
        initial_delay => 1, delay_multiple_on_failure => 2, delay_multiple_on_success => 0.5)) {
    my $now = 1000;
    for my $what (split(//, "ffffssssfff")) {
        my $wait = $what eq "f" ? $backoff->failure($now) : $backoff->success($now);
        $now += $wait;
        print "$what$wait ";
    }
}
PROGRAM
seen=$(perl -Ipackage/usr/share/perl5 seen.pl)
echo "Algorithm::Backoff 0.009, waits after failures (f) and successes (s), with MILD and with MIMD: $seen"
[ "$seen" = "f1 f2 f4 f8 s5 s2 s0 s0 f0 f0 f0 f1 f2 f4 f8 s4 s2 s1 s0.5 f1 f2 f4 " ]
