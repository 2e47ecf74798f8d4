#!/usr/bin/env bash
# loanit 0.1.0 (schedules of loans for Python): the last payment of a loan of type "balloon" grows with the term, up to
# several times what was borrowed.
#
# Guess: the balloon is 30 per cent, the number that stands in it: of 1000.00 at 10 per cent 300.00 are left for the
# last year, whatever the term, and what is owed becomes less with each payment.
# Seen: 810.95 are left after nine of ten years. Of 30 years each yearly payment of 74.26 is less than the interest,
# 100.00 in the first year; what is owed grows, and the last payment is 5309.08. The payments repay 70 per cent of the
# loan with its interest, and the interest of the other 30 per cent is taken from them.
#
# Who it hurts: whoever compares offers by it: the payments look low, and the rest is not in them. A loan without
# interest is right.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check loanit==0.1.0
cat > "$work/seen.py" << 'PYTHON'
from loanit import Loan

for rate, years in ((0, 10), (0.1, 10), (0.1, 30)):
    schedule = Loan(1000, rate, years, loan_type="balloon").amortization_schedule()
    owed, last = schedule[-2]["Principal Balance"], schedule[-1]["Payment"]
    print(f"{rate:.0%} for {years} years: {schedule[0]['Payment']:.2f}, {owed:.2f}, {last:.2f}", end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "loanit 0.1.0, payment of a year, what is owed before the last one, and the last one: $seen"
[ "$seen" = "0% for 10 years: 70.00, 370.00, 370.00; 10% for 10 years: 113.92, 810.95, 892.04; \
10% for 30 years: 74.26, 4826.43, 5309.08; " ]
