#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Runs what scripts/test has built of this package where npm is installed. 77: it has not.
#
#   own_test.sh package    the package's own tests
#   own_test.sh page       follows README.md, in a folder outside of the repository
set -eu
if [ -z "${MUSTER_TYPESCRIPT_CLIENT:-}" ]; then
  echo "skipped: MUSTER_TYPESCRIPT_CLIENT names no folder; scripts/test makes it where npm is installed"
  exit 77
fi
case $1 in
  package)
    cd "$MUSTER_TYPESCRIPT_CLIENT"
    exec node --test dist/tests/client.test.js dist/tests/handler.test.js
    ;;
  page)
    root=$(cd "$(dirname "$0")/../.." && pwd)
    # What the page has its reader make is there since the build, and so are npm's packages, in its cache.
    CLONE=$(mktemp -d)
    trap 'rm -r "$CLONE"' EXIT
    mkdir "$CLONE/build"
    ln -s "$root/clients" "$CLONE/clients"
    ln -s "$MUSTER_TYPESCRIPT_CLIENT" "$CLONE/build/muster_typescript"
    export CLONE npm_config_offline=true npm_config_audit=false npm_config_fund=false
    python3 "$root/tests/docs/pages_test.py" "$root/clients/typescript/README.md"
    ;;
esac
