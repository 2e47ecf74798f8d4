# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The handler written in Go, for the tests that run it. Sourced, after say.sh.

# Sets MUSTER_GO_HANDLER to the program. Does nothing when the variable is set already, or there is no Go.
# Needs the network only for modules that this machine has not fetched before.
build_go_handler() {
  [ -z "${MUSTER_GO_HANDLER:-}" ] || return 0
  command -v go > /dev/null || return 0
  local source=examples/grpc_handler_go program=$PWD/build/tools/go_handler/totals
  say "building $source with Go"
  if ! { (cd clients/go && go mod download) && clients/go/make_module build/muster_go &&
    (cd "$source" && go mod download); } < /dev/null; then
    say "Go cannot fetch what it needs; the tests leave it out"
    return 0
  fi
  # From here on, a failure is a fault of the example.
  (cd "$source" && go vet ./... && CGO_ENABLED=0 go build -buildvcs=false -o "$program" .)
  export MUSTER_GO_HANDLER=$program
}
