#!/usr/bin/env bash
# larzsubscription 0.1.0 (subscriptions for Python): a change from a monthly plan to a yearly one in the middle of a
# month charges half of the year's price for the rest of the month. The whole year is charged when the month ends.
#
# Guess: what is left of the month is charged by the day, of 365 of the new plan, or the year begins at once. That the
# period keeps its end, the method says.
# Seen: from 10.00 for 30 days to 100.00 for 365, after 15 days, 45.00: half of 100.00 less half of 10.00, for 15 days
# that are worth 4.11. The renewal two weeks later charges 100.00. From a yearly to a monthly plan in the middle of the
# year it is -45.00, and the month lasts for the other half of the year.
#
# Who it hurts: shops with monthly and yearly prices: the customer who moves to a year pays for one and a half of them.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check larzsubscription==0.1.0
cat > "$work/seen.py" << 'PYTHON'
from datetime import datetime
from larzsubscription import Plan, Subscription

subscription = Subscription(Plan("month", "10.00"), start=datetime(2026, 11, 1))
change = subscription.change_plan(Plan("year", "100.00", interval_days=365), now=datetime(2026, 11, 16))
end = subscription.next_renewal
print(f"{change} to {end:%d %B}, renewal {subscription.renew(now=end)}, in all {subscription.total_billed()}")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "larzsubscription 0.1.0, from 10.00 for 30 days to 100.00 for 365 on 16 November: $seen"
[ "$seen" = "45.00 to 01 December, renewal 100.00, in all 155.00" ]
