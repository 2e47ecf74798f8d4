#!/usr/bin/env bash
# csv2ofx 0.34.2 (CSV of a bank to OFX and QIF, for Python): an amount with three decimals is a thousand times as much.
# 0.105 is 105.00.
#
# Guess: 0.10 or 0.11, or 0.105 as it stands. A thousand cannot begin with a nought.
# Seen: 105.00. Three digits behind the only point are thousands, whatever is in front of it: -12.345 is -12345.00. Four
# digits are an error, and two are a fraction. So it is in QIF.
#
# Who it hurts: whoever converts the fees and interest of accounts that are kept to a tenth of a cent, or those in
# dinars of Kuwait and Tunisia, which have three decimals: fils become dinars.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check csv2ofx==0.34.2
cat > "$work/seen.csv" << 'CSV'
Date,Amount,Payee,Notes,Account
2026-03-31,0.105,Bank,interest,Checking
2026-03-31,-12.345,Bank,fee,Checking
2026-03-31,0.10,Bank,interest,Checking
CSV
"$work/venv/bin/csv2ofx" "$work/seen.csv" "$work/seen.ofx"
"$work/venv/bin/csv2ofx" --qif "$work/seen.csv" "$work/seen.qif"
seen=$(sed -n 's/.*<TRNAMT>\(.*\)<.TRNAMT>/\1/p' "$work/seen.ofx" | paste --serial --delimiters=' ')
seen="$seen; $(sed -n 's/^T\([-0-9]\)/\1/p' "$work/seen.qif" | paste --serial --delimiters=' ')"
echo "csv2ofx 0.34.2, 0.105, -12.345 and 0.10 in OFX and QIF: $seen"
[ "$seen" = "105.00 -12345.00 0.10; 105.00 -12345.00 0.10" ]
