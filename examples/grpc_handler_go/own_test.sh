#!/bin/sh
# Runs the tests of server.go and totals.go that scripts/test has built where Go is installed. 77: it
# has not.
if [ -z "${MUSTER_GO_HANDLER:-}" ]; then
  echo "MUSTER_GO_HANDLER names no program; scripts/test builds it where Go is installed"
  exit 77
fi
exec "${MUSTER_GO_HANDLER}_test" -test.v -test.timeout 60s
