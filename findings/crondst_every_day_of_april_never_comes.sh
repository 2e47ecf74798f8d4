#!/usr/bin/env bash
# crondst 1.0.3 (cron expressions with time zones for Python, "built according to Vixie Cron"): each day of April is
# refused, for it "results in no triggers".
#
# Guess: "0 10 * 4 *" comes first at 10:00 on 1 April 2026, when asked in March.
# Seen: an error. "0 10 * 1,4 *" does come. The last of the days, and a star has the 31st, must be in one of the months,
# and the days before it do not count. So it is with "0 10 * 2 *" of February, with "0 10 * 4,6,9,11 *", and with
# "0 10 28-31 4 *", which is how crontabs try for the last day of a month.
#
# Who it hurts: whoever has a schedule for one month of 30 days or for February: cron runs it, and here it is turned
# down.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check crondst==1.0.3
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime, timezone

from crondst import CronDst, CronDstError


def first(expression):
    try:
        return f"{next(CronDst(expression).iter(datetime(2026, 3, 2, tzinfo=timezone.utc))):%Y-%m-%d}"
    except CronDstError as error:
        return str(error).rpartition(" - ")[2]


expressions = ["0 10 * 4 *", "0 10 1-30 4 *", "0 10 * 2 *", "0 10 * 4,6,9,11 *", "0 10 28-31 4 *", "0 10 * 1,4 *"]
print(", ".join(map(first, expressions)))
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "crondst 1.0.3, April as * and as 1-30, February, months of 30 days, 28-31 April, January and April: $seen"
none="results in no triggers"
[ "$seen" = "$none, 2026-04-01, $none, $none, $none, 2026-04-01" ]
