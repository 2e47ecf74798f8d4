#!/usr/bin/env python3
"""The retail job as a program: what handler.cc does, with the same exact result.

muster starts one per worker and keeps it: a line of JSON per work item comes in on stdin, and one
goes out on stdout. docs/command_handlers.md is the contract.
"""

import datetime
import decimal
import functools
import json
import re
import sys

COLUMNS = ["quantity", "price", "date", "customer", "country"]
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]{1,18})?|\.[0-9]{1,18})")
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
MAX_DIGITS = 38
LARGEST_REVENUE = decimal.Decimal("9" * (MAX_DIGITS - 3) + ".999")  # decimal(3) in the job

# Python's usual precision is 28 digits: beyond, it rounds.
EXACT = decimal.Context(prec=100, traps=[decimal.Inexact, decimal.InvalidOperation])


class Rejected(Exception):
    """Why a single line cannot be billed."""


@functools.lru_cache(maxsize=10_000)
def parse(column, what, pattern, text):
    digits = text.lstrip("+-").replace(".", "").lstrip("0")
    if not pattern.fullmatch(text) or len(digits) > MAX_DIGITS:
        raise Rejected(f"{column}: not a {what}: '{text}'")
    return decimal.Decimal(text)


@functools.lru_cache(maxsize=10_000)
def month_of(text):
    try:
        if not TIME.fullmatch(text):
            raise ValueError
        # Python has no year 0; like 2000 it has a February 29th.
        year = "2000" if text.startswith("0000") else text[:4]
        datetime.datetime.fromisoformat(year + text[4:])
    except ValueError:
        raise Rejected(f"date: not a time like 2010-12-01 08:26:00: '{text}'") from None
    return text[:7]


def revenue_of(quantity, price):
    revenue = EXACT.multiply(quantity, price)
    if len(revenue.normalize(EXACT).as_tuple().digits) > MAX_DIGITS:
        raise Rejected("revenue: overflows")
    decimals = -revenue.normalize(EXACT).as_tuple().exponent
    if decimals > 3:
        raise Rejected(f"revenue: {revenue:f} needs more than 3 decimals")
    return revenue


def add(sums, revenue, units):
    """The sums of a row with a line added."""
    revenue, units = EXACT.add(sums[0], revenue), EXACT.add(sums[1], units)
    if revenue.copy_abs() > LARGEST_REVENUE:  # abs() would round
        raise Rejected("revenue: overflows")
    if not -(2**63) <= units < 2**63:
        raise Rejected("units: overflows")
    return revenue, units, sums[2] + 1


def bill(item):
    """{group: {keys: sums}} and the rejected lines of a work item."""
    groups = {"by_country_month": {}, "by_customer": {}}
    nothing = (decimal.Decimal(0), decimal.Decimal(0), 0)
    places = [item["columns"].index(column) for column in COLUMNS]
    rejected = []
    for transaction in item["transactions"]:
        fields = transaction["fields"]
        quantity, price, date, customer, country = (fields[place] for place in places)
        try:
            units = parse("quantity", "whole number", WHOLE_NUMBER, quantity)
            unit_price = parse("price", "decimal number", DECIMAL_NUMBER, price)
            month = month_of(date)
            revenue = revenue_of(units, unit_price)
            keys = {"by_country_month": (country, month), "by_customer": (customer,)}
            # All rows or none: a line is either billed or rejected.
            sums = {group: add(groups[group].get(key, nothing), revenue, units)
                    for group, key in keys.items()}
        except Rejected as reason:
            rejected.append({"line": transaction["line"], "reason": str(reason)})
            continue
        for group, key in keys.items():
            groups[group][key] = sums[group]
    return groups, rejected


def rows(names, sums):
    # Fractions go as text: to most programs a JSON number is a binary fraction, which is not exact.
    return [dict(zip(names, key), revenue=f"{revenue:f}", units=int(units), transactions=count)
            for key, (revenue, units, count) in sums.items()]


def main():
    for line in sys.stdin:
        item = json.loads(line)
        if item["muster"] != 1:
            sys.exit(f"bill.py speaks version 1, not {item['muster']}")
        groups, rejected = bill(item)
        answer = {
            "item": item["item"],
            "outcome": "ok",
            "groups": {
                "by_country_month": rows(["country", "month"], groups["by_country_month"]),
                "by_customer": rows(["customer"], groups["by_customer"]),
            },
            "rejected": rejected,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
