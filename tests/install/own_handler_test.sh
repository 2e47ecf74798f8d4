#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Usage: own_handler_test.sh CMAKE BUILD_DIR COMPILER WORK_DIR
set -euo pipefail
cmake=$1 build=$2 compiler=$3 work=$4
example=$(cd "$(dirname "$0")/../../examples/own_handler" && pwd)

fail() {
  echo "FAILED: $*"
  exit 1
}

rm -rf "$work"
mkdir -p "$work"
cp -R "$example" "$work/own_handler"
cd "$work"

"$cmake" --install "$build" --prefix "$work/prefix" > install.log
for file in bin/muster bin/muster-processor include/muster/muster/handler/handler.h \
  include/muster/cli/main.h include/muster/services/processor/program.h; do
  [ -e "prefix/$file" ] || fail "install left out $file"
done
! find prefix -name '*_test*' -o -path '*conformance*' | grep . || fail "install took tests along"

"$cmake" -S own_handler -B built -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  > configure.log || { cat configure.log && fail "find_package(muster)"; }
"$cmake" --build built

cd own_handler
run=(../built/my_muster run job.yaml --input timesheet.csv --data-dir "$work/data" -o json)
result=$("${run[@]}") || fail "run ended with $?"
echo "$result"
grep -q '"transactions":5,"aggregated":4,"rejected":1,' <<< "$result" || fail "wrong counts"
../built/my_muster report 1 --group by_project -o csv --data-dir "$work/data" > "$work/report.csv"
diff - "$work/report.csv" << 'CSV' || fail "wrong report"
project,hours,bookings
bridge,7.75,2
tunnel,6.75,2
CSV
