# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash disable=SC2034  # the lists are for those who source this file
# The Debian packages that muster needs, and how they get onto the machine. Sourced, after say.sh.
# The names are the same on Debian 12 and 13.

build_packages=(
  ca-certificates ccache cmake g++ git make ninja-build pkg-config protobuf-compiler
  protobuf-compiler-grpc
  libabsl-dev libboost-dev libcli11-dev libcurl4-openssl-dev libexpat1-dev libgmock-dev libgrpc++-dev
  libgtest-dev liblz4-dev libnats-dev libprotobuf-dev librocksdb-dev libsimdjson-dev libsqlite3-dev libssl-dev libxxhash-dev
  libyaml-cpp-dev libzstd-dev nlohmann-json3-dev prometheus-cpp-dev python3 sqlite3 tzdata
)

# The packages for the tests, in addition to those for the build: libraries, tools, the compiler and
# linker of the preset dev, and the header that the harnesses of tests/fuzz read their inputs by.
test_packages=(
  clang dpkg-dev file libclang-rt-dev librapidcheck-dev lld mypy nats-server openssl prometheus python3-grpcio python3-jsonschema
  python3-pip python3-protobuf python3-setuptools python3-venv python3-wheel python3-xxhash python3-yaml
)

# The compiler and linker of the presets asan, tsan and fuzz, and the sanitizers and the fuzzer, of Debian 12.
sanitizer_packages=(clang-14 libclang-rt-14-dev lld-14)

# The packages that .ci/run needs, in addition to those for the tests. Releases of clang format
# differently, so this is the one place that pins a version: the one of Debian 12.
check_packages=(clang-format-14 shellcheck)

# What scripts/prove needs in addition to all of these.
proof_packages=("${sanitizer_packages[@]}" clang-tidy-14)

# What sends telemetry by OTLP, and what tests receive it with. Debian 13 has them, and Debian 12 in its
# backports, which few machines have enabled: muster is built without them, too.
otlp_packages=(opentelemetry-cpp-dev python3-opentelemetry-proto)

# Runs a command as root: directly, or through sudo.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo "$@"
  else
    fail "'$*' needs root, and there is no sudo"
  fi
}

# Prints the named packages that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2> /dev/null |
      grep -qx installed || printf '%s\n' "$package"
  done
}

# Waits for other runs of these scripts and for other users of apt on this machine.
one_at_a_time=(flock /run/lock/muster-apt)
apt_options=(-qq -o DPkg::Lock::Timeout=600)

apt_update() { as_root "${one_at_a_time[@]}" apt-get "${apt_options[@]}" update < /dev/null; }

# Installs packages, and lets none of them start a service: tests and scripts start daemons of their own, with
# their own ports and data. A policy that the machine has already stays.
apt_install() {
  # shellcheck disable=SC2016  # the variables are the inner shell's
  as_root env DEBIAN_FRONTEND=noninteractive "${one_at_a_time[@]}" sh -c '
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
      trap "rm -f $policy" EXIT
      trap "exit 130" INT TERM
      printf "#!/bin/sh\nexit 101\n" > "$policy"
      chmod +x "$policy"
    fi
    apt-get install --yes --no-install-recommends -o Dpkg::Use-Pty=0 "$@" > /dev/null' \
    apt_install "${apt_options[@]}" "$@" < /dev/null
}

# Installs the named packages that are missing. Does nothing, and needs no root, when none is
# missing.
install_packages() {
  if ! command -v apt-get > /dev/null; then
    fail "this is no Debian. muster is built on Debian 12 and 13; it needs the packages: $*"
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -gt 0 ] || return 0
  [ "$(id -u)" -eq 0 ] || command -v sudo > /dev/null ||
    fail "packages are missing, and there is no sudo. Run this as root, then this script again:
apt-get update && apt-get install --yes --no-install-recommends ${missing[*]}"
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  with_signs_of_life apt_update || fail "apt-get could not fetch the lists of packages: is there a network?"
  with_signs_of_life apt_install "${missing[@]}" ||
    fail "apt-get could not install all packages (its reason stands above); is there a network, and space on the disk?"
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -eq 0 ] || fail "apt-get did not install: ${missing[*]}"
}

# Installs the packages for OTLP where apt knows them.
install_otlp_packages() {
  if apt-cache show "${otlp_packages[@]}" > /dev/null 2>&1; then
    install_packages "${otlp_packages[@]}"
  else
    say "no telemetry by OTLP: apt knows no ${otlp_packages[0]} (on Debian 12: enable bookworm-backports)"
  fi
}

# Lets apt of Debian 12 know the backports, from the mirror that it uses; for machines whose only purpose
# is to test. Leaves apt as it was if the mirror has none.
enable_backports() {
  local suite=bookworm-backports list=/etc/apt/sources.list.d/muster-backports.list mirror
  grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release || return 0
  ! grep -rqs "$suite" /etc/apt/sources.list /etc/apt/sources.list.d || return 0
  mirror=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) bookworm .*/\2/p' \
    /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2> /dev/null | head -n 1) || true
  [ -n "$mirror" ] || return 0
  echo "deb $mirror $suite main" | as_root tee "$list" > /dev/null
  apt_update || as_root rm -f "$list"
}
