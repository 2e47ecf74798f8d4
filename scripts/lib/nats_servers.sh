# shellcheck shell=bash
# Which nats-server programs the tests run against. Sourced, after say.sh.
#
# Debian's nats-server is the oldest that muster works with. Clusters run a current one, which is
# built, too, where Go is installed.

nats_server_version=v2.15.2

# Sets MUSTER_NATS_SERVERS, unless it is set already.
find_nats_servers() {
  [ -z "${MUSTER_NATS_SERVERS:-}" ] || return 0
  export MUSTER_NATS_SERVERS=nats-server
  if ! command -v go > /dev/null; then
    say "there is no Go: the tests run against Debian's nats-server alone"
    return 0
  fi
  local folder=$PWD/build/tools/nats
  if [ "$("$folder/nats-server" --version 2> /dev/null)" != "nats-server: $nats_server_version" ]; then
    say "building nats-server $nats_server_version with Go"
    if ! GOBIN=$folder CGO_ENABLED=0 GOFLAGS=-mod=mod \
      go install "github.com/nats-io/nats-server/v2@$nats_server_version" < /dev/null; then
      say "Go cannot build it; the tests run against Debian's nats-server alone"
      return 0
    fi
  fi
  MUSTER_NATS_SERVERS=nats-server:$folder/nats-server
}
