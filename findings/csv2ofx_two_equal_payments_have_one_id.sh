#!/usr/bin/env bash
# csv2ofx 0.34.2 (CSV of a bank to OFX, for Python): two payments of one day with the same amount and text have the same
# FITID, the identifier of a transaction.
#
# Guess: two identifiers, since there are two lines, of two tram tickets: in OFX a FITID is unique within an account.
# Seen: the same one twice, and a third ticket that costs ten cents more has its own. It is a hash of the line's fields.
#
# Who it hurts: whoever imports the file: programs know by this identifier what they have already, and so one of two
# tickets, coffees or fees counts as a repetition.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check csv2ofx==0.34.2
cat > "$work/seen.csv" << 'CSV'
Date,Amount,Payee,Notes,Account
2026-03-31,-2.80,Tram,ticket,Checking
2026-03-31,-2.80,Tram,ticket,Checking
2026-03-31,-2.90,Tram,ticket,Checking
CSV
"$work/venv/bin/csv2ofx" "$work/seen.csv" "$work/seen.ofx"
mapfile -t ids < <(sed -n 's/.*<FITID>\(.*\)<.FITID>/\1/p' "$work/seen.ofx")
seen="${#ids[@]} payments, $(printf '%s\n' "${ids[@]}" | sort --unique | wc --lines) identifiers"
[ "${ids[0]}" = "${ids[1]}" ] && seen="$seen, the first two the same"
echo "csv2ofx 0.34.2: $seen"
[ "$seen" = "3 payments, 2 identifiers, the first two the same" ]
