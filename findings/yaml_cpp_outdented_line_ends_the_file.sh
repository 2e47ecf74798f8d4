#!/usr/bin/env bash
# yaml-cpp 0.7.0 (of Debian 12): YAML::Load reads a file up to the first line that is indented less than its first one,
# and says nothing of the rest.
#
# Guess: a key that is less indented than the keys before it is an error, as in the middle of a file, and as other YAML
# libraries have it: a second document begins with "---" only.
# Seen: of " workers: 8", then "limit: 100", YAML::Load gives a map with "workers" alone. The rest counts as a second
# document, which YAML::LoadAll shows. A list, or a map in braces, that is followed by a key is cut off like that, too.
# One level further in, the same mistake is an error.
#
# Who it hurts: programs whose configuration is a YAML file: a space before its first key, as from a copy out of a
# longer file, and every other setting has its default.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 libyaml-cpp-dev=0.7.0+dfsg-8+b1 libyaml-cpp0.7=0.7.0+dfsg-8+b1 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done

cat > program.cc << 'PROGRAM'
#include <iostream>
#include "yaml-cpp/yaml.h"
int main(int, char** argv) {
  try {
    YAML::Emitter out;
    out.SetMapFormat(YAML::Flow);
    out.SetSeqFormat(YAML::Flow);
    out << YAML::Load(argv[1]);
    std::cout << out.c_str() << ", " << YAML::LoadAll(argv[1]).size() << " documents\n";
  } catch (const YAML::Exception& error) {
    std::cout << error.msg << "\n";
  }
}
PROGRAM
folder=$(dirname "$(find "$PWD/package" -name 'libyaml-cpp.so.0.7')")
g++ -std=c++17 -isystem package/usr/include -o program program.cc -L"$folder" -lyaml-cpp
expect() { # TEXT SEEN
  local seen
  seen=$(LD_LIBRARY_PATH=$folder ./program "$1")
  printf 'yaml-cpp 0.7.0: %q is %s\n' "$1" "$seen"
  [ "$seen" = "$2" ] || { echo "expected: $2" && exit 1; }
}
expect $'workers: 8\nlimit: 100\n' "{workers: 8, limit: 100}, 1 documents"
expect $' workers: 8\nlimit: 100\n' "{workers: 8}, 2 documents"
expect $'- a\nlimit: 100\n' "[a], 2 documents"
expect $'{workers: 8}\nlimit: 100\n' "{workers: 8}, 2 documents"
expect $'pool:\n   workers: 8\n  limit: 100\n' "end of map not found"
