#!/usr/bin/env bash
# pyasn1 0.6.5 (ASN.1 for Python): a time of a zone behind UTC is written as one of a zone ahead. Noon at -08:00 becomes
# +1600, which is the same time of the day before.
#
# Guess: 20261130120000-0800, for the same instant; and +0530 for India.
# Seen: 20261130120000+1600, and asDateTime of the same object is 24 hours earlier than what went in. -05:00 is +1900.
# +05:30 is +051800, half an hour in seconds, which the class does not read. Whole hours ahead of UTC are right. UTCTime
# does the same.
#
# Who it hurts: call records and certificates from the Americas, which carry local times with an offset: each is a day
# early, in a field that tells the right hour at a glance.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check pyasn1==0.6.5
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime, timedelta, timezone
from pyasn1.error import PyAsn1Error
from pyasn1.type.useful import GeneralizedTime, UTCTime

for kind, hours in ((GeneralizedTime, -8), (UTCTime, -5), (GeneralizedTime, 5.5), (GeneralizedTime, 10)):
    noon = datetime(2026, 11, 30, 12, tzinfo=timezone(timedelta(hours=hours)))
    written = kind.fromDateTime(noon)
    try:
        moved = (written.asDateTime - noon) / timedelta(hours=1)
    except PyAsn1Error:
        moved = "unreadable"
    print(str(written)[-10:], moved, end=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "pyasn1 0.6.5, end of the time and hours that it moved, -08:00, -05:00 (UTCTime), +05:30 and +10:00: $seen"
[ "$seen" = "20000+1600 -24.0, 20000+1900 -24.0, 000+051800 unreadable, 20000+1000 0.0, " ]
