#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests scripts/make_retail and tests/reference/retail_sum.py with each other.

Run by ctest: make_retail_test.py SOURCE_DIR
"""

import collections
import csv
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
MAKE = SOURCE / "scripts/make_retail"
SUM = SOURCE / "tests/reference/retail_sum.py"
ROWS = 30_000


def make(path, rows=ROWS, seed=1):
    subprocess.run([MAKE, "--rows", str(rows), "--seed", str(seed), path], check=True)
    return pathlib.Path(path)


def run_sum(*arguments):
    return subprocess.run([SUM, *arguments], capture_output=True, text=True, encoding="utf-8")


class MakeRetail(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = make(pathlib.Path(cls.folder.name, "retail.csv"))
        with cls.path.open(encoding="utf-8", newline="") as lines:
            reader = csv.DictReader(lines, strict=True)
            cls.columns = reader.fieldnames
            cls.rows = list(reader)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def count(self, condition):
        return sum(1 for row in self.rows if condition(row))

    def test_writes_the_rows_asked_for_under_the_columns_of_the_real_set(self):
        self.assertEqual(len(self.rows), ROWS)
        self.assertEqual(
            ",".join(self.columns),
            "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country")
        self.assertFalse(any(None in row or None in row.values() for row in self.rows))

    def test_writes_the_same_bytes_for_a_seed_and_others_for_another(self):
        again = make(pathlib.Path(self.folder.name, "again.csv")).read_bytes()
        other = make(pathlib.Path(self.folder.name, "other.csv"), seed=2).read_bytes()
        self.assertEqual(again, self.path.read_bytes())
        self.assertNotEqual(other, again)

    def test_holds_what_is_awkward_in_the_real_set(self):
        self.assertTrue(self.count(lambda row: "," in row["Description"]))
        self.assertTrue(self.count(lambda row: '"' in row["Description"]))
        self.assertTrue(self.count(lambda row: not row["Description"].isascii()))
        self.assertTrue(self.count(lambda row: row["Description"] == ""))
        self.assertTrue(self.count(lambda row: row["UnitPrice"].startswith("-")))
        self.assertTrue(self.count(lambda row: len(row["UnitPrice"].partition(".")[2]) == 3))
        self.assertIn(b'""', self.path.read_bytes())

    def test_has_returns_with_a_negative_quantity_and_no_others(self):
        for row in self.rows:
            self.assertEqual(row["InvoiceNo"].startswith("C"), row["Quantity"].startswith("-"))
        self.assertTrue(0.005 < self.count(lambda r: r["Quantity"][0] == "-") / ROWS < 0.05)

    def test_shares_of_countries_months_and_blank_customers_are_those_of_the_real_set(self):
        countries = collections.Counter(row["Country"] for row in self.rows)
        self.assertGreater(len(countries), 20)
        self.assertTrue(0.85 < countries["United Kingdom"] / ROWS < 0.95)
        self.assertEqual(len({row["InvoiceDate"][:7] for row in self.rows}), 13)
        self.assertTrue(0.2 < self.count(lambda row: row["CustomerID"] == "") / ROWS < 0.3)

    def test_lines_of_an_invoice_share_date_customer_and_country(self):
        heads = collections.defaultdict(set)
        for row in self.rows:
            if not row["InvoiceNo"].startswith("A"):
                heads[row["InvoiceNo"]].add(
                    (row["InvoiceDate"], row["CustomerID"], row["Country"]))
        self.assertEqual({len(head) for head in heads.values()}, {1})
        self.assertLess(len(heads), ROWS / 5)

    def test_a_short_file_is_whole(self):
        for rows in (1, 12, 13, 1000):
            path = make(pathlib.Path(self.folder.name, "short.csv"), rows=rows)
            self.assertEqual(path.read_text(encoding="utf-8").count("\n"), rows + 1)

    def test_refuses_no_rows_and_a_folder_that_is_not_there(self):
        self.assertEqual(subprocess.run([MAKE, "--rows", "0", "x"], capture_output=True).returncode,
                         2)
        done = subprocess.run([MAKE, "/no/such/folder/x.csv"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/no/such/folder/x.csv", done.stderr)


class RetailSum(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = make(pathlib.Path(self.folder.name, "retail.csv"), rows=2000)

    def compare(self, report):
        path = pathlib.Path(self.folder.name, "report.json")
        path.write_text(json.dumps(report), encoding="utf-8")
        return run_sum(self.path, "--compare", path)

    def report(self):
        return json.loads(run_sum(self.path).stdout)

    def test_accounts_for_every_line_in_each_group(self):
        for group in self.report()["groups"]:
            self.assertEqual(sum(int(row["transactions"]) for row in group["rows"]), 2000)

    def test_adds_exactly(self):
        self.path.write_text(
            "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n"
            '1,2,"a, ""b""",6,2010-12-01 08:26:00,2.55,17850.0,EIRE\n'
            "1,2,,-1,2010-12-31 08:26:00,0.001,17850.0,EIRE\n"
            "1,2,,1,2010-12-31 08:26:00,0.0001,17850.0,EIRE\n"
            "1,2,,x,2010-12-31 08:26:00,1,17850.0,EIRE\n"
            "1,2,,1,2010-02-30 08:26:00,1,17850.0,EIRE\n"
            "1,2,,1\n", encoding="utf-8")
        measures = {"revenue": "15.299", "units": "5", "transactions": "2"}
        self.assertEqual(self.report(), {"groups": [
            {"name": "by_country_month",
             "rows": [{"country": "EIRE", "month": "2010-12", **measures}]},
            {"name": "by_customer", "rows": [{"customer": "17850.0", **measures}]}]})

    def test_finds_a_report_equal_however_its_numbers_and_rows_are_written(self):
        report = self.report()
        for group in report["groups"]:
            group["rows"].reverse()
            for row in group["rows"]:
                row["revenue"] += "000" if "." in row["revenue"] else ".000"
        done = self.compare(report)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith("0 differences"))

    def test_tells_a_wrong_a_missing_and_an_added_row(self):
        report = self.report()
        rows = report["groups"][1]["rows"]
        missing = rows.pop()
        rows.append({**missing, "customer": "nobody"})
        rows[0]["revenue"] = "0.001"
        done = self.compare(report)
        self.assertEqual(done.returncode, 1)
        self.assertIn("revenue is", done.stdout)
        self.assertIn("missing in the report", done.stdout)
        self.assertIn("in the report only", done.stdout)
        self.assertIn("3 differences", done.stdout)

    def test_refuses_what_is_no_report(self):
        for report in ({}, {"groups": []}, {"groups": [{"name": "x", "rows": [{}]}]}):
            self.assertEqual(self.compare(report).returncode, 1)


if __name__ == "__main__":
    unittest.main(verbosity=0)
