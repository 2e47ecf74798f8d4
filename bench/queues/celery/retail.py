# SPDX-License-Identifier: Apache-2.0
"""The retail job: the items of a file, and a worker's result for an item. It rejects the same lines
as examples/retail/handler.cc."""

import collections
import csv
import datetime
import functools
import io
import itertools
import operator
import re

ITEM_LINES = 500
COLUMNS = ["Quantity", "UnitPrice", "InvoiceDate", "CustomerID", "Country"]
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]{1,18})?|\.[0-9]{1,18})")
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
PRICE_DECIMALS, REVENUE_DECIMALS = 18, 3
MAX_DIGITS = 38
REMEMBERED = 65_536


def items(path):
    """Yields the items. Each item is CSV by itself: the header line, and its own lines."""
    with open(path, encoding="utf-8", newline="\n") as lines:
        header = next(lines)
        records = whole_records(lines)
        while text := "".join(itertools.islice(records, ITEM_LINES)):
            yield header + text


def whole_records(lines):
    """Yields whole records. A line feed within quotes does not end a record."""
    for record in lines:
        while record.count('"') % 2:
            record += next(lines)
        yield record


def bill(item):
    """An item's totals: rows of keys, revenue in thousandths, units and lines."""
    records = csv.reader(io.StringIO(item, newline=""))
    header = next(records)
    pick = operator.itemgetter(*map(header.index, COLUMNS))
    places, customers = (collections.defaultdict(lambda: [0, 0, 0]) for _ in range(2))
    transactions = rejected = 0
    for fields in filter(None, records):
        transactions += 1
        try:
            if len(fields) != len(header):
                raise ValueError
            quantity, price, date, customer, country = pick(fields)
            revenue, units = amounts(quantity, price)
            place = country, month_of(date)
        except ValueError:
            rejected += 1
            continue
        for sums in places[place], customers[customer,]:
            sums[0] += revenue
            sums[1] += units
            sums[2] += 1
    return {"transactions": transactions, "rejected": rejected,
            "by_country_month": rows(places), "by_customer": rows(customers)}


def rows(sums_by_key):
    return [[key, *sums] for key, sums in sums_by_key.items()]


@functools.lru_cache(REMEMBERED)
def amounts(quantity, price):
    """Returns revenue and units; raises ValueError when the quantity or the price is not valid."""
    if not WHOLE_NUMBER.fullmatch(quantity) or not DECIMAL_NUMBER.fullmatch(price):
        raise ValueError
    units = int(quantity)
    whole, _, fraction = price.partition(".")
    digits = (whole.lstrip("+-") + fraction).lstrip("0")
    revenue, too_fine = divmod(units * int(whole + fraction.ljust(PRICE_DECIMALS, "0")),
                               10 ** (PRICE_DECIMALS - REVENUE_DECIMALS))
    # The product may have as many digits as it could have without the cut to thousandths.
    cut = max(len(fraction.rstrip("0")) - REVENUE_DECIMALS, 0)
    if (not -2**63 <= units < 2**63 or len(digits) > MAX_DIGITS or too_fine
            or abs(revenue) >= 10 ** (MAX_DIGITS - cut)):
        raise ValueError
    return revenue, units


@functools.lru_cache(REMEMBERED)
def month_of(date):
    if not TIME.fullmatch(date):
        raise ValueError
    # Python has no year 0; like 2000 it has a February 29th.
    year = "2000" if date.startswith("0000") else date[:4]
    datetime.datetime.fromisoformat(year + date[4:])
    return date[:7]
