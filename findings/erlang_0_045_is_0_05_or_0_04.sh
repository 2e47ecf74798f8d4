#!/usr/bin/env bash
# Erlang/OTP 25.2.3 (of Debian 12): to two digits, float_to_binary() makes 0.05 of 0.045, and io_lib:format() makes 0.04
# of it. To one digit, 0.15 is 0.2 and 0.1.
#
# Guess: 0.04 and 0.1 from both, for it is the same number: 0.045 is 0.04499999999999999833, and 0.15 is
# 0.14999999999999999445.
# Seen: float_to_binary() with decimals rounds some of these up. 1.005 and 2.675, which are a little less than they look
# as well, are 1.00 and 2.67 with both. Of the 10,000 amounts from 0.005 to 99.995, the two differ in 101.
#
# Who it hurts: a share or a tax that is stored with one of them and shown with the other: the bill and the journal
# differ by a cent.
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

binary(Amount, Digits) -> float_to_binary(Amount, [{decimals, Digits}]).
format(Amount, Digits) -> list_to_binary(io_lib:format("~.*f", [Digits, Amount])).

main() ->
    [io:format("~s ~s, ", [binary(Amount, Digits), format(Amount, Digits)]) ||
        {Amount, Digits} <- [{0.045, 2}, {0.15, 1}, {1.005, 2}, {2.675, 2}]],
    Amounts = [Mills / 1000 || Mills <- lists:seq(5, 99995, 10)],
    io:format("~p", [length([Amount || Amount <- Amounts, binary(Amount, 2) =/= format(Amount, 2)])]).
PROGRAM
seen=$(ROOTDIR=$root BINDIR=$binaries EMU=beam PROGNAME=erl HOME=$work "$binaries/erlexec" -noshell -eval \
  'compile:file(seen), c:l(seen), seen:main(), halt().')
echo "Erlang/OTP 25.2.3, 0.045, 0.15, 1.005 and 2.675 with both, and how many of 10000 differ: $seen"
[ "$seen" = "0.05 0.04, 0.2 0.1, 1.00 1.00, 2.67 2.67, 101" ]
