#!/usr/bin/env bash
# csv-parse 7.0.3 (for JavaScript): with cast and cast_date a text that ends with a number becomes a date: "PO-12" is
# the first of December 2001.
#
# Guess: cast_date makes dates of what has a date's form, as "2026-11-29" has. The rest stays a text.
# Seen: "PO-12" is 2001-12-01, "Order 2026" is 2026-01-01 and "Room 7" is 2001-07-01. "PO-13" and "5 apples" stay texts.
# It takes what Date.parse() takes.
#
# Who it hurts: imports whose columns have order numbers, names of sites or of products. Some of a column's values are
# other ones afterwards, those whose number can be a month or a year, and the text cannot be had back.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
npm install --silent --prefix "$work" csv-parse@7.0.3
cat > "$work/seen.mjs" << 'PROGRAM'
import { parse } from "csv-parse/sync";

const [values] = parse("PO-12,Order 2026,Room 7,PO-13,5 apples,2026-11-29\n", { cast: true, cast_date: true });
console.log(values.map((value) => (value instanceof Date ? value.toISOString().slice(0, 10) : value)).join(", "));
PROGRAM
seen=$(TZ=UTC node "$work/seen.mjs")
echo "csv-parse 7.0.3: PO-12, Order 2026, Room 7, PO-13, 5 apples and 2026-11-29 are $seen"
[ "$seen" = "2001-12-01, 2026-01-01, 2001-07-01, PO-13, 5 apples, 2026-11-29" ]
