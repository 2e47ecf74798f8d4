# SPDX-License-Identifier: Apache-2.0
"""The retail job as a query of DuckDB: what one would write where nothing need be durable, retried or
accounted for. Called by bench/end_to_end, with a Python that has the package duckdb.

    python bench/duckdb_query.py FILE.csv

Prints how many transactions it has counted, and in which time.
"""

import json
import sys
import time

import duckdb

MEASURES = """sum(Quantity::DECIMAL(18, 0) * UnitPrice) AS revenue, sum(Quantity) AS units,
              count(*) AS transactions"""
GROUPS = {"by_country_month": "Country, strftime(InvoiceDate, '%Y-%m')", "by_customer": "CustomerID"}


def main():
    begun = time.monotonic()
    connection = duckdb.connect()
    connection.execute("""CREATE VIEW lines AS SELECT * FROM read_csv(?, header = true, columns = {
        'InvoiceNo': 'VARCHAR', 'StockCode': 'VARCHAR', 'Description': 'VARCHAR', 'Quantity': 'BIGINT',
        'InvoiceDate': 'TIMESTAMP', 'UnitPrice': 'DECIMAL(18, 3)', 'CustomerID': 'VARCHAR',
        'Country': 'VARCHAR'})""".replace("?", "'" + sys.argv[1].replace("'", "''") + "'"))
    connection.execute("CREATE TEMP TABLE picked AS SELECT Quantity, UnitPrice, InvoiceDate, CustomerID, "
                       "Country FROM lines")
    counted = {}
    for name, keys in GROUPS.items():
        rows = connection.execute(
            f"SELECT {keys}, {MEASURES} FROM picked GROUP BY ALL").fetchall()
        counted[name] = sum(row[-1] for row in rows)
    seconds = time.monotonic() - begun
    transactions = counted["by_customer"]
    if transactions != counted["by_country_month"]:
        sys.exit(f"the groups differ: {counted}")
    print(json.dumps({"transactions": transactions, "transactions_per_second": transactions / seconds,
                      "version": duckdb.__version__}))


if __name__ == "__main__":
    main()
