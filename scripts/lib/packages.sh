# shellcheck shell=bash disable=SC2034  # the lists are for those who source this file
# The Debian packages that muster needs, and how they get onto the machine. Sourced, after say.sh.
# The names are the same on Debian 12 and 13.

build_packages=(
  ca-certificates ccache cmake g++ git make ninja-build pkg-config protobuf-compiler
  protobuf-compiler-grpc
  libabsl-dev libcli11-dev libcurl4-openssl-dev libgmock-dev libgrpc++-dev libgtest-dev liblz4-dev
  libnats-dev libprotobuf-dev librocksdb-dev libsimdjson-dev libsqlite3-dev libssl-dev libxxhash-dev
  libyaml-cpp-dev libzstd-dev nlohmann-json3-dev python3 sqlite3
)

# The packages for the tests, in addition to those for the build: libraries and tools.
test_packages=(
  librapidcheck-dev mypy nats-server openssl python3-grpcio python3-jsonschema python3-pip
  python3-protobuf python3-setuptools python3-venv python3-wheel python3-xxhash python3-yaml
)

# The compiler and linker of the presets asan, tsan and fuzz, and the sanitizers and the fuzzer.
sanitizer_packages=(clang-14 libclang-rt-14-dev lld-14)

# The packages that .ci/run needs, in addition to those for the tests. Releases of clang format
# differently, so this is the one place that pins a version: the one of Debian 12.
check_packages=("${sanitizer_packages[@]}" clang-format-14 clang-tidy-14 shellcheck)

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
  as_root apt-get update -qq < /dev/null
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends \
    -o Dpkg::Use-Pty=0 "${missing[@]}" < /dev/null > /dev/null
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -eq 0 ] || fail "apt-get did not install: ${missing[*]}"
}
