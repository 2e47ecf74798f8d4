#!/usr/bin/env bash
# larzsubscription 0.1.0 (subscriptions for Python): who changes to a cheaper plan in the free trial gets money back
# that was never paid, and who changes to a dearer one pays in it.
#
# Guess: in the trial, for which nothing is charged, a change of the plan costs nothing. The trial's end is the first
# charge.
# Seen: from 30.00 to 10.00 a month after half of a trial of 14 days change_plan() gives -10.00, which is an invoice of
# its own; total_billed() is -10.00 in the status "trialing". From 10.00 to 30.00 it is 10.00. The share of the period
# that is left is taken of both prices, as if the first were paid.
#
# Who it hurts: a shop that pays credits out, or sets them off against the next invoice: a trial with the dearest plan
# makes the cheap one free for a month.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check larzsubscription==0.1.0
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime
from larzsubscription import Plan, Subscription

basic = Plan("basic", "10.00", trial_days=14)
best = Plan("best", "30.00", trial_days=14)
for old, new in ((best, basic), (basic, best)):
    subscription = Subscription(old, start=datetime(2026, 11, 1))
    charge = subscription.change_plan(new, now=datetime(2026, 11, 8))
    print(f"to {new.name} {charge}, {subscription.status}, billed {subscription.total_billed()}", end="; ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "larzsubscription 0.1.0, a change of the plan in the trial: $seen"
[ "$seen" = "to basic -10.00, trialing, billed -10.00; to best 10.00, trialing, billed 10.00; " ]
