#!/usr/bin/env bash
# CLI11 2.1.2 (of Debian 12): a whole number with a leading zero is octal, in lists, too. With a digit 8 or 9 it is
# refused. For an option of a floating type it is decimal.
#
# Guess: 010 is ten, as strtol(text, end, 10), std::stoi and std::from_chars have it.
# Seen: 010 is 8, and 1,010,3 is 1, 8 and 3. 08 is "Could not convert". As a double 010 is 10. --help names a plain INT.
#
# Who it hurts: scripts whose numbers have a fixed width: $(date +%m), $(seq -w 1 31), partition 010. Numbers below 8
# are right, 8 and 9 fail, and from 010 on it is another one that is worked on.
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
  int number = 0;
  double real = 0;
  std::vector<int> list;
  app.add_option("--number", number);
  app.add_option("--real", real);
  app.add_option("--list", list)->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  std::cout << number << " " << real;
  for (const int item : list) std::cout << " " << item;
  std::cout << "\n";
}
PROGRAM
g++ -std=c++17 -isystem package/usr/include -o program program.cc
expect() { # SEEN WORD...
  local seen
  seen=$({ ./program "${@:2}" 2>&1 || true; } | head -1)
  echo "CLI11 2.1.2: ${*:2} is $seen"
  [ "$seen" = "$1" ] || { echo "expected: $1" && exit 1; }
}
expect "7 0" --number 07
expect "8 0" --number 010
expect "Could not convert: --number = 08" --number 08
expect "0 10" --real 010
expect "0 0 1 8 3" --list 1,010,3
