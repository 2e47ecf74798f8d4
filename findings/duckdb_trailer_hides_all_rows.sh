#!/usr/bin/env bash
# DuckDB 2.0.1: of a CSV file of up to some 2000 rows whose last line has a column more, read_csv gives the last line
# only.
#
# Guess: the last line is an error, as a line with too many columns in a larger file is; or the file is read in another,
# odd way, in which all lines are there.
# Seen: a header, a hundred rows of three columns and a last line of four, as a trailer with control totals has: the
# result is one row, the trailer, with its columns named column0 to column3. The sniffer skips the 101 lines before it
# as if they were notes above the table, which sniff_csv says as SkipRows 101. With 3000 rows, the same is an error.
#
# Who it hurts: a job that adds up files of partners, and tests with large ones. A small day is booked as one row, or as
# none where the row is filtered out, and no call fails.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==2.0.1
cat > "$work/seen.py" << 'PYTHON'
import duckdb, sys

file = sys.argv[1]


def seen(rows):
    with open(file, "w") as csv:
        csv.write("id,name,amount\n" + "".join(f"{row},name{row},{row}.50\n" for row in range(rows)))
        csv.write(f"TRAILER,{rows},99,x\n")
    try:
        got = duckdb.sql(f"SELECT * FROM read_csv('{file}')").fetchall()
        skipped = duckdb.sql(f"SELECT SkipRows FROM sniff_csv('{file}')").fetchall()[0][0]
        return f"{got}, {skipped} lines skipped"
    except duckdb.InvalidInputException as error:
        return type(error).__name__


print("100 rows:", seen(100), "| 3000 rows:", seen(3000))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py" "$work/rows.csv")
echo "DuckDB 2.0.1: $seen"
[ "$seen" = "100 rows: [('TRAILER', 100, 99, 'x')], 101 lines skipped | 3000 rows: InvalidInputException" ]
