#!/usr/bin/env bash
# Polars 2.1.0 (for Python): read_csv with a decimal type rounds what has more digits after the point, to the even
# neighbour, and says nothing. pyarrow 26.0.1 refuses the file.
#
# Guess: an error, as for a text in a column of numbers: a declared type is checked, and ignore_errors is off.
# Seen: with Decimal(10, 2), 0.004 is 0.00, 0.005 is 0.00, and 0.015 is 0.02. pyarrow: "Rescaling Decimal value would
# cause data loss". An x in the same column is Polars' ComputeError.
#
# Who it hurts: whoever declares amounts of a partner's file as decimals to have the sum exact. Prices of a tenth of a
# cent become nothing, and the total does not fit the partner's.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check polars==2.1.0 pyarrow==26.0.1
cat > "$work/seen.py" << 'PYTHON'
import io
import polars, pyarrow, pyarrow.csv

FILE = b"amount\n0.004\n0.005\n0.015\n"


def by_polars(file):
    try:
        return polars.read_csv(io.BytesIO(file), schema={"amount": polars.Decimal(10, 2)})["amount"].to_list()
    except polars.exceptions.ComputeError:
        return ["ComputeError"]


def by_arrow(file):
    options = pyarrow.csv.ConvertOptions(column_types={"amount": pyarrow.decimal128(10, 2)})
    try:
        return pyarrow.csv.read_csv(io.BytesIO(file), convert_options=options)["amount"].to_pylist()
    except pyarrow.ArrowInvalid:
        return ["ArrowInvalid"]


print(*by_polars(FILE), *by_polars(FILE + b"x\n"), *by_arrow(FILE))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "Polars 2.1.0 of 0.004, 0.005, 0.015; with an x; pyarrow 26.0.1: $seen"
[ "$seen" = "0.00 0.00 0.02 ComputeError ArrowInvalid" ]
