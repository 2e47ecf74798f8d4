#!/usr/bin/env bash
# Erlang/OTP 25.2.3 (of Debian 12): calendar:system_time_to_rfc3339() makes 1970-01-01T00:00:00.001Z of -1 millisecond,
# and calendar:rfc3339_to_system_time() makes -1500 of 1969-12-31T23:59:59.500Z.
#
# Guess: 1969-12-31T23:59:59.999Z and -500. Whole seconds before 1970 are right, and all times after it.
# Seen: before 1970 the fraction has the wrong sign. -500 is written as 1970-01-01T00:00:00.500Z and comes back as 500.
# -1500 is written as 23:59:59.500Z, half a second before 1970 instead of one and a half.
#
# Who it hurts: dates of birth and old contracts in milliseconds that go to other programs as text, or come from them:
# they are off by a second, and differences that are kept as a time lose their sign.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 erlang-base 2> /dev/null
dpkg-deb --extract erlang-base_*.deb package
root=$work/package/usr/lib/erlang
binaries=$(find "$root" -path '*/erts-*/bin' -type d)
cat > seen.erl << 'PROGRAM'
-module(seen).
-export([main/0]).

main() ->
    Options = [{unit, millisecond}, {offset, "Z"}],
    [io:format("~s ", [calendar:system_time_to_rfc3339(Time, Options)]) || Time <- [-1, -500, -1500, -1000, 1]],
    [io:format("~p ", [calendar:rfc3339_to_system_time(Text, [{unit, millisecond}])]) ||
        Text <- ["1969-12-31T23:59:59.500Z", "1969-12-31T23:59:58Z", "1970-01-01T00:00:00.500Z"]].
PROGRAM
seen=$(ROOTDIR=$root BINDIR=$binaries EMU=beam PROGNAME=erl HOME=$work "$binaries/erlexec" -noshell -eval \
  'compile:file(seen), c:l(seen), seen:main(), halt().')
echo "Erlang/OTP 25.2.3, -1, -500, -1500, -1000 and 1 as texts, and half a second and two before 1970: $seen"
[ "$seen" = "1970-01-01T00:00:00.001Z 1970-01-01T00:00:00.500Z 1969-12-31T23:59:59.500Z 1969-12-31T23:59:59.000Z \
1970-01-01T00:00:00.001Z -1500 -2000 500 " ]
