#!/usr/bin/env python3
"""The retail job as a server, with the package of clients/python.

    ./handler.py [HOST:PORT]     # localhost:7800

Its totals are those of examples/retail/handler.cc, to the last digit.
"""

import datetime
import decimal
import re
import sys

import muster

VERSION = "1"  # to be changed whenever the results may change; job.yaml says the same
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
DECIMAL_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]{1,18})?|\.[0-9]{1,18})")
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")
LONGEST_NUMBER = len("+") + 38 + len(".")
# Python's usual precision is 28 digits: beyond, it rounds.
EXACT = decimal.Context(prec=200)


class Rejected(Exception):
    """Why a single line cannot be billed."""


def number(transaction: muster.Transaction, column: str, what: str,
           pattern: "re.Pattern[str]") -> decimal.Decimal:
    text = transaction[column]
    if not pattern.fullmatch(text) or len(text) > LONGEST_NUMBER:
        raise Rejected(f"{column}: not a {what}: '{text}'")
    return decimal.Decimal(text)


def month_of(text: str) -> str:
    try:
        if not TIME.fullmatch(text):
            raise ValueError
        datetime.datetime.fromisoformat(text)
    except ValueError:
        raise Rejected(f"date: not a time like 2010-12-01 08:26:00: '{text}'") from None
    return text[:7]


def bill(item: muster.Item, results: muster.Results) -> None:
    for transaction in item.transactions:
        try:
            units = number(transaction, "quantity", "whole number", WHOLE_NUMBER)
            price = number(transaction, "price", "decimal number", DECIMAL_NUMBER)
            month = month_of(transaction["date"])
            measures: "dict[str, muster.Number]" = {
                "revenue": EXACT.multiply(units, price), "units": units, "transactions": 1}
            # Counts in both groups, or in none.
            results.add({
                "by_country_month": muster.Row(
                    {"country": transaction["country"], "month": month}, measures),
                "by_customer": muster.Row({"customer": transaction["customer"]}, measures)})
        except (Rejected, muster.Unfit) as reason:
            results.reject(transaction.line, str(reason))


def main() -> None:
    address = sys.argv[1] if len(sys.argv) > 1 else "localhost:7800"
    server = muster.serve_handler(
        bill, version=VERSION, listen=address, name="handler.py",
        columns=["quantity", "price", "date", "customer", "country"],
        groups=["by_country_month", "by_customer"])
    print(f"listening on {server.address}", flush=True)
    server.run()


if __name__ == "__main__":
    main()
