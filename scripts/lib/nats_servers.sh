# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# Which nats-server programs the tests run against. Sourced, after say.sh.
#
# Debian's nats-server is the oldest that muster works with. Clusters run a current one, which is
# built, too, where Go is installed. For all tests, so is one between the two: that of Debian 13.

nats_server_version=v2.15.2
nats_server_between_version=v2.10.27

# Builds FOLDER/nats-server unless it is there in this version: FOLDER VERSION.
install_nats_server() {
  [ "$("$1/nats-server" --version 2> /dev/null)" != "nats-server: $2" ] || return 0
  say "building nats-server $2 with Go"
  GOBIN=$1 CGO_ENABLED=0 GOFLAGS=-mod=mod go install "github.com/nats-io/nats-server/v2@$2" < /dev/null
}

# Sets MUSTER_NATS_SERVERS, unless it is set already: the oldest first, the newest last. With `all`, there is one
# between them.
find_nats_servers() {
  [ -z "${MUSTER_NATS_SERVERS:-}" ] || return 0
  export MUSTER_NATS_SERVERS=nats-server
  if ! command -v go > /dev/null; then
    say "there is no Go: the tests run against Debian's nats-server alone"
    return 0
  fi
  local folder=$PWD/build/tools/nats
  if ! install_nats_server "$folder" "$nats_server_version"; then
    say "Go cannot build it; the tests run against Debian's nats-server alone"
    return 0
  fi
  if [ "${1:-}" = all ] && install_nats_server "$folder/between" "$nats_server_between_version"; then
    MUSTER_NATS_SERVERS+=:$folder/between/nats-server
  fi
  MUSTER_NATS_SERVERS+=:$folder/nats-server
}
