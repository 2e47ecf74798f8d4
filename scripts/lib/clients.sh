# SPDX-License-Identifier: Apache-2.0

# shellcheck shell=bash
# The clients in other languages than Python, for the tests that run them. Sourced, after say.sh.

# Sets MUSTER_GO_CLIENT to a folder with the tests of the module and its adapter for
# clients/interface_test. Does nothing when the variable is set already, or there is no Go. Needs the
# network only for modules that this machine has not fetched before.
build_go_client() {
  [ -z "${MUSTER_GO_CLIENT:-}" ] || return 0
  command -v go > /dev/null || return 0
  local folder=$PWD/build/tools/go_client
  say "building clients/go with Go"
  # The second is what users of the module ask for, and what fetches all that they need.
  if ! { (cd clients/go && go mod download) && clients/go/make_module "$folder/module" &&
    (cd "$folder/module" && go mod tidy); } < /dev/null; then
    say "Go cannot fetch what it needs; the tests leave it out"
    return 0
  fi
  # From here on, a failure is a fault of the module.
  cmp clients/go/go.mod "$folder/module/go.mod"
  cmp clients/go/go.sum "$folder/module/go.sum"
  (cd "$folder/module" && go vet ./... &&
    CGO_ENABLED=0 go build -buildvcs=false -o "$folder/interfaceadapter" ./internal/interfaceadapter &&
    CGO_ENABLED=0 go test -c -o "$folder/module_test" .)
  export MUSTER_GO_CLIENT=$folder
}

# Sets MUSTER_TYPESCRIPT_CLIENT to a folder with the package, its tests and its adapter for
# clients/interface_test. Does nothing when the variable is set already, or there is no npm. Needs the
# network the first time only.
build_typescript_client() {
  [ -z "${MUSTER_TYPESCRIPT_CLIENT:-}" ] || return 0
  command -v npm > /dev/null || return 0
  local folder=$PWD/build/tools/typescript_client
  say "building clients/typescript with npm"
  if ! clients/typescript/make_package "$folder" --fetch < /dev/null; then
    say "npm cannot fetch what it needs; the tests leave it out"
    return 0
  fi
  # From here on, a failure is a fault of the package.
  clients/typescript/make_package "$folder"
  export MUSTER_TYPESCRIPT_CLIENT=$folder
}
