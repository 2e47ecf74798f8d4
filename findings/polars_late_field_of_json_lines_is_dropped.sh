#!/usr/bin/env bash
# Polars 2.1.0 (for Python): read_ndjson drops a field that the first hundred lines do not have. A number in them that
# becomes a fraction later is an error.
#
# Guess: a column with nulls, or an error; a CSV file whose later lines have a column more is an error.
# Seen: of 150 lines {"id":1} and one {"id":2,"refund":5} the result has 151 rows and the column id only. The same with
# 50 lines has both columns. {"id":1.5} as the last line is a ComputeError. infer_schema_length=None finds refund.
#
# Who it hurts: whoever reads events or records of which some rare kind has a field of its own: refunds, corrections,
# errors. The field is there in the test's small file and gone in a real one.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check polars==2.1.0
cat > "$work/seen.py" << 'PYTHON'
import io
import polars


def columns(lines, last):
    try:
        frame = polars.read_ndjson(io.BytesIO(b'{"id":1}\n' * lines + last))
    except polars.exceptions.ComputeError:
        return "ComputeError"
    return f"{len(frame)} rows of {'+'.join(frame.columns)}"


LATE = b'{"id":2,"refund":5}\n'
print(columns(150, LATE), columns(50, LATE), columns(150, b'{"id":1.5}\n'), sep=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "polars 2.1.0: $seen"
[ "$seen" = "151 rows of id, 51 rows of id+refund, ComputeError" ]
