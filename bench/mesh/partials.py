# SPDX-License-Identifier: Apache-2.0
"""Adds up the partial results that workers of Celery, BullMQ and Asynq store for the retail job.

A partial is JSON: how many transactions an item has, how many of them are rejected, and for each
group its rows of keys, revenue in thousandths, units and transactions. Numbers are whole; they are
text where a program's JSON has no room for large ones.
"""

import json

KEYS = {"by_country_month": ["country", "month"], "by_customer": ["customer"]}


def add_up(partials):
    """{transactions, rejected, groups}, the groups as `muster report BATCH -o json` prints them."""
    totals = {"transactions": 0, "rejected": 0}
    groups = {group: {} for group in KEYS}
    for partial in map(json.loads, partials):
        for name in totals:
            totals[name] += partial[name]
        for group, rows in groups.items():
            for keys, *sums in partial[group]:
                before = rows.get(tuple(keys), (0, 0, 0))
                rows[tuple(keys)] = [a + int(b) for a, b in zip(before, sums)]
    return {**totals, "groups": [
        {"name": group, "rows": [row(group, keys, sums) for keys, sums in rows.items()]}
        for group, rows in groups.items()]}


def row(group, keys, sums):
    revenue, units, transactions = sums
    whole, thousandths = divmod(abs(revenue), 1000)
    return {**dict(zip(KEYS[group], keys)),
            "revenue": f"{'-' if revenue < 0 else ''}{whole}.{thousandths:03}",
            "units": str(units), "transactions": str(transactions)}
