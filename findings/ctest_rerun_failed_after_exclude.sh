#!/usr/bin/env bash
# ctest 4.1.0 (and 3.25.2, of Debian 12): `--rerun-failed` after a run with `--exclude-regex` runs other
# tests than those that failed, and ends with 0.
#
# Guess: `--rerun-failed` runs the tests that failed in the last run, whatever options that run had.
# Seen: an exclusion is applied before the tests are numbered, so that the numbers that the run writes
# to Testing/Temporary/LastTestsFailed.log are those of the shortened list. `--rerun-failed` reads the
# numbers, not the names beside them, against the whole list: here `second`, which passed, runs again in
# the place of `third`, which failed. "100% tests passed" and exit code 0 then look like a healthy retry.
# `--tests-regex` and `--label-exclude` do not shift the numbers.
#
# Who it hurts: a CI script that leaves out a test with -E and tries the failed ones again.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
cd "$work"

cat > CTestTestfile.cmake << 'TESTS'
add_test(first "true")
add_test(second "true")
add_test(third "false")
set_tests_properties(first PROPERTIES LABELS left_out)
TESTS
ctest() { "$work/venv/bin/ctest" "$@" 2> /dev/null || true; }
names() { sed -n 's/^ *[0-9]*\/[0-9]* Test *#\([0-9]*\): \([a-z]*\) .*/#\1 \2/p' | paste -sd ' '; }
expect() { [ "$2" = "$3" ] || { printf '%s: %s, and not: %s\n' "$1" "$2" "$3" && exit 1; }; }

for version in 3.25.2 4.1.0; do
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check "cmake==$version"
  expect "ctest $version, without first" "$(ctest --exclude-regex '^first$' | names)" "#1 second #2 third"
  expect "ctest $version, what failed" "$(cat Testing/Temporary/LastTestsFailed.log)" "2:third"
  expect "ctest $version, run again" "$(ctest --rerun-failed | names)" "#2 second"
  "$work/venv/bin/ctest" --exclude-regex '^first$' > /dev/null 2>&1 || true
  "$work/venv/bin/ctest" --rerun-failed > /dev/null 2>&1 || { echo "ctest $version: the retry failed" && exit 1; }
  expect "ctest $version, without first by its label" "$(ctest --label-exclude left_out | names)" "#2 second #3 third"
  expect "ctest $version, run again" "$(ctest --rerun-failed | names)" "#3 third"
  echo "ctest $version: the retry after --exclude-regex ran second, which had passed, and ended with 0"
done
