#!/usr/bin/env bash
# sqlite3 3.40.1 (of Debian 12), the program: .import goes on after rows that a table refuses, the commands after it
# run, and the exit code is 0, also with -bail and ".bail on".
#
# Guess: .bail on stops at the first row that cannot be inserted, with exit code 1, as it does at an INSERT.
# Seen: of four lines the second has a text for an INTEGER of a STRICT table, and the third a key that is there. Both
# are named on stderr, two rows are imported, the next command runs, and the exit code is 0. So it is inside BEGIN and
# COMMIT: half of the file is committed. An INSERT of the same kind ends the script with 1.
#
# Who it hurts: a script that loads a partner's file with .import and relies on the exit code, or on a transaction, to
# have all of it or nothing.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download --quiet=2 sqlite3=3.40.1-2+deb12u2 libsqlite3-0=3.40.1-2+deb12u2 libreadline8 2> /dev/null
for package in *.deb; do dpkg-deb --extract "$package" package; done
libraries=$(find "$PWD/package" -name '*.so.*' -printf '%h\n' | sort -u | paste -s -d :)
printf '%s\n' 1,10 2,ten 1,30 4,40 > rows.csv
table='CREATE TABLE t(id INTEGER PRIMARY KEY, amount INTEGER) STRICT;'

run() { # LINE...: what a script of these lines prints, and its exit code
  local code=0
  printf '%s\n' '.bail on' "$table" "$@" 'SELECT count(*) FROM t;' > script
  LD_LIBRARY_PATH=$libraries package/usr/bin/sqlite3 -bail :memory: < script 2> errors || code=$?
  echo "exit code $code"
}
import=$(run BEGIN\; '.import --csv rows.csv t' COMMIT\; | paste -s -d ' ')
echo "sqlite3 3.40.1: .import of four rows, two of them bad: rows and exit code $import; it says"
cat errors
[ "$import" = "2 exit code 0" ]
[ "$(grep -c 'INSERT failed' errors)" = 2 ]
insert=$(run "INSERT INTO t VALUES (2, 'ten');" | paste -s -d ' ')
echo "the same as an INSERT: $insert"
[ "$insert" = "exit code 1" ]
