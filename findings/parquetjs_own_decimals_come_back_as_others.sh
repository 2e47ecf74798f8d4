#!/usr/bin/env bash
# @dsnp/parquetjs 1.8.8 (for JavaScript): what it writes into a decimal column of up to nine digits it reads back as
# other numbers. pyarrow 26.0.1 reads the same file as it was written.
#
# Guess: a file that a library writes is read by it, and by others, as what went in. Of ten digits it is so.
# Seen: 2.5, -2.5, 7.25 and 10 come back as 2.5, 0, -2.5 and -0.01. It writes 64 bits for each, and for a precision of
# up to 9 reads 32, so that each number is two. The rows are as many as there were, and there is no error.
#
# Who it hurts: services in JavaScript that keep amounts in Parquet files of their own: the first amount is right, the
# others belong to other rows or are nothing. It shows only when somebody else opens the file.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" @dsnp/parquetjs@1.8.8
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check pyarrow==26.0.1
cat > "$work/seen.cjs" << 'PROGRAM'
const { ParquetReader, ParquetSchema, ParquetWriter } = require("@dsnp/parquetjs");

async function writtenAndRead(precision) {
  const file = `${precision}.parquet`;
  const schema = new ParquetSchema({ amount: { type: "DECIMAL", precision, scale: 2 } });
  const writer = await ParquetWriter.openFile(schema, file);
  for (const amount of [2.5, -2.5, 7.25, 10]) await writer.appendRow({ amount });
  await writer.close();
  const reader = await ParquetReader.openFile(file);
  const cursor = reader.getCursor();
  const seen = [];
  for (let row = await cursor.next(); row; row = await cursor.next()) seen.push(row.amount);
  await reader.close();
  return seen.join(" ");
}

(async () => console.log(await writtenAndRead(9), ";", await writtenAndRead(10)))();
PROGRAM
cat > "$work/seen.py" << 'PYTHON'
import pyarrow.parquet

print(*pyarrow.parquet.read_table("9.parquet")["amount"].to_pylist())
PYTHON
seen="$(cd "$work" && node seen.cjs); $(cd "$work" && venv/bin/python seen.py)"
echo "parquetjs 1.8.8 of 9 digits, of 10, and pyarrow 26.0.1 of 9: $seen"
[ "$seen" = "2.5 0 -2.5 -0.01 ; 2.5 -2.5 7.25 10; 2.50 -2.50 7.25 10.00" ]
