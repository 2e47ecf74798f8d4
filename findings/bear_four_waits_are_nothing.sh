#!/usr/bin/env bash
# bear 0.8.2 (of Debian 12, statistics for Erlang, which folsom uses for its metrics): of four waits, the least, the
# greatest, the mean and the percentiles are 0, and their number is 0, too.
#
# Guess: 5, 100, 28.75 and 4 for the waits 5, 5, 5 and 100. With five waits they are right.
# Seen: 0.0 for all of them, as for no wait at all. Fewer than five values are taken for none, and the number says so,
# too.
#
# Who it hurts: alerts and bills from metrics of a quiet hour: four calls that took a minute each are no calls that took
# no time.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 erlang-base erlang-bear=0.8.2+dfsg-3 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
root=$work/package/usr/lib/erlang
binaries=$(find "$root" -path '*/erts-*/bin' -type d)
cat > seen.erl << 'PROGRAM'
-module(seen).
-export([main/0]).

seen(Waits) ->
    Seen = bear:get_statistics(Waits),
    Percentiles = proplists:get_value(percentile, Seen),
    [io:format("~p ", [proplists:get_value(Key, Seen)]) || Key <- [n, min, max, arithmetic_mean]],
    io:format("~p, ", [proplists:get_value(95, Percentiles)]).

main() ->
    lists:foreach(fun seen/1, [[5, 5, 5, 100], [5, 5, 5, 5, 100], []]).
PROGRAM
seen=$(ROOTDIR=$root BINDIR=$binaries EMU=beam PROGNAME=erl HOME=$work "$binaries/erlexec" -noshell \
  -pa "$root"/lib/bear-*/ebin -eval 'compile:file(seen), c:l(seen), seen:main(), halt().')
echo "bear 0.8.2, number, least, greatest, mean and 95 % of four waits, of five, and of none: $seen"
[ "$seen" = "0 0.0 0.0 0.0 0.0, 5 5 100 24.0 100, 0 0.0 0.0 0.0 0.0, " ]
