#!/usr/bin/env bash
# CLI11 2.1.2 (of Debian 12): `--name=` does not set an option to the empty text, but takes the next word.
#
# Guess: `--name=` gives the empty value, as getopt_long(3) and Python's argparse have it.
# Seen: CLI11 splits the word at '=', drops the empty half, and reads on as if only `--name` stood there. The
# next word becomes the value, also one that begins with dashes; where there is none, the value is "missing".
# `--name ''` gives the empty value.
#
# Who it hurts: `--nats=$URL` in a script or a manifest where the variable is empty. The option after it is
# swallowed, and what the program complains of, if it does, is that other option.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 libcli11-dev=2.1.2+ds-1 2> /dev/null
dpkg-deb --extract libcli11-dev_*.deb package

cat > program.cc << 'PROGRAM'
#include <iostream>
#include "CLI/CLI.hpp"
int main(int argc, char** argv) {
  CLI::App app;
  std::string name = "default", other = "default";
  app.add_option("--name", name);
  app.add_option("--other", other);
  CLI11_PARSE(app, argc, argv);
  std::cout << "name '" << name << "', other '" << other << "'\n";
}
PROGRAM
g++ -std=c++17 -isystem package/usr/include -o program program.cc
expect() { [ "$1" = "$2" ] || { printf '%s, and not: %s\n' "$1" "$2" && exit 1; }; }

expect "$(./program --name '' --other x)" "name '', other 'x'"
expect "$(./program --name= x)" "name 'x', other 'default'"
expect "$(./program --name= --other=x)" "name '--other=x', other 'default'"
./program --name= 2> missing && echo "--name= alone is accepted" && exit 1
grep -q 'required .* missing' missing || { cat missing && exit 1; }
echo "CLI11 2.1.2: --name= --other=x sets name to '--other=x', and other stays as it was"
