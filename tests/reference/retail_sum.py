#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up a retail CSV file independently, to compare a report of muster with it.

    tests/reference/retail_sum.py INPUT.csv                        prints the groups as JSON
    tests/reference/retail_sum.py INPUT.csv --compare REPORT.json  exits 1 and says what differs

REPORT.json is what `muster report BATCH -o json` prints; it may hold some of the groups. It shares
no code with muster: Python's csv and decimal modules do the work. Numbers are compared as numbers,
exactly. A line that cannot be billed (a row of another length, text for a number, no such time) is
left out, as muster rejects it; so is a line that is too large for a measure by itself.
"""

import argparse
import csv
import datetime
import decimal
import functools
import json
import re
import sys

COLUMNS = ["Quantity", "UnitPrice", "InvoiceDate", "CustomerID", "Country"]
KEYS = {"by_country_month": ["country", "month"], "by_customer": ["customer"]}
MEASURES = ["revenue", "units", "transactions"]
SMALLEST_REVENUE = decimal.Decimal("0.001")
LARGEST_REVENUE = decimal.Decimal("9" * 35 + ".999")
LARGEST_UNITS = 2**63
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]+)?|\.[0-9]+)")
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
DIFFERENCES_SHOWN = 20

EXACT = decimal.Context(prec=200, traps=[decimal.Inexact, decimal.InvalidOperation])


@functools.lru_cache(maxsize=100_000)
def parse(pattern, text):
    if not pattern.fullmatch(text):
        raise ValueError(text)
    return decimal.Decimal(text)


@functools.lru_cache(maxsize=100_000)
def month_of(text):
    if not TIME.fullmatch(text):
        raise ValueError(text)
    # muster accepts year 0 and Python does not; year 0 has a February 29th, like 2000.
    year = text[:4] if text[:4] != "0000" else "2000"
    datetime.datetime.strptime(year + text[4:], "%Y-%m-%d %H:%M:%S")
    return text[:7]


def bill(fields):
    """Returns {group: key} and the measures of a line; ValueError when it cannot be billed."""
    quantity_text, price, date, customer, country = fields
    quantity = parse(WHOLE_NUMBER, quantity_text)
    revenue = EXACT.multiply(quantity, parse(DECIMAL_NUMBER, price))
    revenue = EXACT.quantize(revenue, SMALLEST_REVENUE)  # Inexact when it has more decimals
    if revenue.copy_abs() > LARGEST_REVENUE or not -LARGEST_UNITS <= quantity < LARGEST_UNITS:
        raise ValueError(fields)
    keys = {"by_country_month": (country, month_of(date)), "by_customer": (customer,)}
    return keys, (revenue, quantity, decimal.Decimal(1))


def add_up(path):
    """{group: {keys: [measures]}} and the number of lines left out."""
    groups = {name: {} for name in KEYS}
    left_out = 0
    csv.field_size_limit(sys.maxsize)
    with open(path, encoding="utf-8", newline="") as lines:
        reader = csv.reader(lines)
        header = next(reader)
        places = [header.index(column) for column in COLUMNS]
        for row in reader:
            if not row:
                continue
            try:
                if len(row) != len(header):
                    raise ValueError(row)
                keys, measures = bill([row[place] for place in places])
            except (ValueError, decimal.Inexact):
                left_out += 1
                continue
            for group, key in keys.items():
                sums = groups[group].get(key, (decimal.Decimal(0),) * len(MEASURES))
                groups[group][key] = [EXACT.add(a, b) for a, b in zip(sums, measures)]
    return groups, left_out


def shown(number):
    """The shortest exact decimal: 12.500 is 12.5, and 10 is 10."""
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def as_json(groups):
    return {"groups": [
        {"name": name,
         "rows": [dict(zip(KEYS[name] + MEASURES, [*key, *map(shown, rows[key])]))
                  for key in sorted(rows, key=lambda parts: [p.encode() for p in parts])]}
        for name, rows in sorted(groups.items())]}


def read_report(path):
    """The same form as add_up, from a report."""
    with open(path, encoding="utf-8") as report:
        document = json.load(report)
    groups = {}
    for group in document["groups"]:
        rows = groups.setdefault(group["name"], {})
        for row in group["rows"]:
            key = tuple(row[name] for name in KEYS[group["name"]])
            if key in rows:
                raise ValueError(f"{group['name']} has two rows for {key}")
            rows[key] = [decimal.Decimal(row[measure]) for measure in MEASURES]
    return groups


def differences(expected, reported):
    for name in sorted(reported):
        for key in sorted(expected[name].keys() | reported[name].keys()):
            label = f"{name} {'|'.join(key)!r}"
            if key not in reported[name]:
                yield f"{label}: missing in the report"
            elif key not in expected[name]:
                yield f"{label}: in the report only"
            else:
                for measure, a, b in zip(MEASURES, expected[name][key], reported[name][key]):
                    if a != b:
                        yield f"{label}: {measure} is {shown(a)}, the report says {shown(b)}"


def compare(expected, path):
    try:
        reported = read_report(path)
    except (OSError, ValueError, KeyError, TypeError, decimal.InvalidOperation) as error:
        sys.exit(f"{path} is not a report: {error!r}")
    if not reported:
        sys.exit(f"{path} holds no groups")
    found = list(differences(expected, reported))
    for line in found[:DIFFERENCES_SHOWN]:
        print(line)
    if len(found) > DIFFERENCES_SHOWN:
        print(f"… and {len(found) - DIFFERENCES_SHOWN} more")
    rows = sum(len(rows) for rows in reported.values())
    print(f"{len(found)} differences in {rows} rows of {len(reported)} groups")
    return 1 if found else 0


def main():
    parser = argparse.ArgumentParser(description="Adds up a retail CSV file independently.")
    parser.add_argument("input", metavar="INPUT.csv")
    parser.add_argument("--compare", metavar="REPORT.json")
    options = parser.parse_args()
    groups, left_out = add_up(options.input)
    if left_out:
        print(f"{left_out} lines cannot be billed", file=sys.stderr)
    if options.compare:
        sys.exit(compare(groups, options.compare))
    json.dump(as_json(groups), sys.stdout, ensure_ascii=False)
    print()


if __name__ == "__main__":
    main()
