#!/usr/bin/env bash
# duckdb 2.0.1 (for Python): INTERVAL '1.5' HOUR is an hour, and INTERVAL '1.5 hours' is one and a half. INTERVAL '0.5'
# DAY is nothing.
#
# Guess: 90 minutes both times, and 12 hours, or an error: to_hours(1.5) is one, for it takes whole numbers.
# Seen: where the unit stands outside of the text, or the amount is no text, the fraction is cut off. Two and a half
# minutes are two. Seconds keep theirs: INTERVAL '1.5' SECOND is 1.5. A day times 1.5 is a day and 12 hours.
#
# Who it hurts: queries with leases, timeouts or windows of usage: whether a half counts depends on where the quote
# ends, an added half of a day is no time at all, and no error tells it.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check duckdb==2.0.1
cat > "$work/seen.py" << 'PYTHON'
import duckdb

intervals = ("interval '1.5' hour", "interval 1.5 hour", "interval '1.5 hours'", "interval '0.5' day",
             "interval '0.5 days'", "interval '2.5' minute", "interval '1.5' second", "interval '1 day' * 1.5")
print(*(duckdb.execute(f"select {interval}").fetchall()[0][0] for interval in intervals), sep=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "duckdb 2.0.1, '1.5' hour, 1.5 hour, '1.5 hours', '0.5' day, '0.5 days', '2.5' minute and more: $seen"
[ "$seen" = "1:00:00, 1:00:00, 1:30:00, 0:00:00, 12:00:00, 0:02:00, 0:00:01.500000, 1 day, 12:00:00" ]
