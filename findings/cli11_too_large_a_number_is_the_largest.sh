#!/usr/bin/env bash
# CLI11 2.1.2 (of Debian 12): a number that is too large for an option of 64 bits is not refused, but becomes the
# largest that fits. For one of 32 bits it is refused.
#
# Guess: a number that does not fit is an error, "Could not convert", whatever the type.
# Seen: for int64_t 9223372036854775808 becomes 9223372036854775807, and twenty nines do, too; for uint64_t
# 18446744073709551616 becomes 18446744073709551615. For int32_t 2147483648 is an error. strtoll() says with errno that
# it did not fit, and CLI11 compares the result with itself once it is narrowed, which tells nothing at the full width.
#
# Who it hurts: a program that takes counts, sizes or amounts of cents in 64 bits and trusts that what it got is what
# was typed. A digit too many, and it works with another number.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 libcli11-dev=2.1.2+ds-1 2> /dev/null
dpkg-deb --extract libcli11-dev_*.deb package

cat > program.cc << 'PROGRAM'
#include <cstdint>
#include <iostream>
#include "CLI/CLI.hpp"
int main(int argc, char** argv) {
  CLI::App app;
  std::int64_t wide = 0;
  std::uint64_t natural = 0;
  std::int32_t narrow = 0;
  app.add_option("--wide", wide);
  app.add_option("--natural", natural);
  app.add_option("--narrow", narrow);
  CLI11_PARSE(app, argc, argv);
  std::cout << wide << " " << natural << " " << narrow << "\n";
}
PROGRAM
g++ -std=c++17 -isystem package/usr/include -o program program.cc
expect() { # SEEN WORD...
  local seen
  seen=$({ ./program "${@:2}" 2>&1 || true; } | head -1)
  echo "CLI11 2.1.2: ${*:2} is $seen"
  [ "$seen" = "$1" ] || { echo "expected: $1" && exit 1; }
}
expect "9223372036854775807 0 0" --wide 9223372036854775807
expect "9223372036854775807 0 0" --wide 9223372036854775808
expect "9223372036854775807 0 0" --wide 99999999999999999999
expect "-9223372036854775808 0 0" --wide -9223372036854775809
expect "0 18446744073709551615 0" --natural 18446744073709551616
expect "Could not convert: --narrow = 2147483648" --narrow 2147483648
