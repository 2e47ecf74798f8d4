#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Runs what scripts/test has built of this module where Go is installed. 77: it has not.
#
#   own_test.sh module     the module's own tests
#   own_test.sh page       follows README.md, in a folder outside of the repository
if [ -z "${MUSTER_GO_CLIENT:-}" ]; then
  echo "skipped: MUSTER_GO_CLIENT names no folder; scripts/test makes it where Go is installed"
  exit 77
fi
case $1 in
  module) exec "$MUSTER_GO_CLIENT/module_test" -test.v -test.timeout 120s ;;
  page)
    CLONE=$(cd "$(dirname "$0")/../.." && pwd)
    # All modules are here since the build.
    export CLONE GOPROXY=off GOSUMDB=off
    exec python3 "$CLONE/tests/docs/pages_test.py" "$CLONE/clients/go/README.md"
    ;;
esac
