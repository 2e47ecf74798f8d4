#!/usr/bin/env bash
# Python's sqlite3 (CPython 3.11): an INSERT that begins with WITH is in no transaction: it is there at once, and
# rollback() does not take it back. UPDATE and DELETE are alike.
#
# Guess: the module begins a transaction before each statement that changes rows, so that "with connection:" undoes all
# of them when something fails.
# Seen: after INSERT INTO t VALUES (1) in_transaction is true, and "with connection:" with an exception after it leaves
# an empty table. After WITH a(x) AS (VALUES (1)) INSERT INTO t SELECT x FROM a it is false, rowcount is -1, and the row
# stays. The module looks at the first word only. If another change came first, the transaction is open, and the row is
# undone.
#
# Who it hurts: a ledger that books with a WITH statement and marks the input as read with the next one. A failure in
# between, and the same input is booked again.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
cat > "$work/seen.py" << 'PYTHON'
import sqlite3, sys

PLAIN = "INSERT INTO t VALUES (1)"
WITH = "WITH a(x) AS (VALUES (1)) INSERT INTO t SELECT x FROM a"


def left_after(*statements):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t(x)")
    try:
        with connection:
            for statement in statements:
                rowcount = connection.execute(statement).rowcount
            is_open = connection.in_transaction
            raise RuntimeError
    except RuntimeError:
        pass
    left = connection.execute("SELECT count(*) FROM t").fetchone()[0]
    return f"transaction {is_open}, rowcount {rowcount}, {left} left"


print("INSERT:", left_after(PLAIN), "| WITH INSERT:", left_after(WITH), "| both:", left_after(PLAIN, WITH))
for change in ("UPDATE t SET x = 2", "DELETE FROM t"):
    assert "transaction False" in left_after("WITH a(x) AS (VALUES (1)) " + change)
PYTHON
seen=$(python3 "$work/seen.py")
echo "$(python3 --version): $seen"
[ "$seen" = "INSERT: transaction True, rowcount 1, 0 left | WITH INSERT: transaction False, rowcount -1, 1 left |\
 both: transaction True, rowcount -1, 0 left" ]
