#!/usr/bin/env bash
# evenmoney 1.0.1 (amounts and taxes for Python): in countries with a personal allowance a part of the income is in two
# brackets of the income tax, and taxed in both.
#
# Guess: of a salary of 50000 in the United States, with the allowance of 14600 that it has, 35400 are taxed: 11600 with
# 10 per cent and 23800 with 12, which is 4016.
# Seen: 6035. Its own list has 10 per cent from 14600 to 26200, 12 per cent from 14600 to 50000, and 22 per cent from
# 47150 to 50000: 49850 in all. The allowance is taken off the income, and off the limits of the brackets once more. In
# Poland 180000 of 150000 are taxed. In Germany, which has a bracket of 0 per cent instead, the brackets add up.
#
# Who it hurts: whoever works out wages or prices by the hour from it: half as much tax again, with a list of brackets
# beside it that nobody adds up.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check evenmoney==1.0.1
cat > "$work/seen.py" << 'PYTHON'
from evenmoney import tax

for country, salary in (("US", 50000), ("PL", 180000), ("DE", 100000)):
    result = tax.income(salary, country=country, annual=True)
    taxed = sum(bracket["to"] - bracket["from"] for bracket in result.brackets)
    print(f"{country} {salary}: {result.income_tax:.0f}, of {taxed:.0f}", end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "evenmoney 1.0.1, income tax, and the sum of its brackets: $seen"
[ "$seen" = "US 50000: 6035, of 49850; PL 180000: 33600, of 180000; DE 100000: 22886, of 100000; " ]
