#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the installed ones of Celery, BullMQ and Asynq on a few items: queues_test.py SOURCE_DIR

The benchmark must leave out a queue that is not installed, and say how to install it.
"""

import contextlib
import dataclasses
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

source = pathlib.Path(sys.argv.pop())
sys.path[:0] = [str(source / "bench/mesh"), str(source / "tests/reference")]
import partials  # noqa: E402
import queues  # noqa: E402
import retail_sum  # noqa: E402

ITEMS = 300
ROWS = 2_900
NINES = "9" * 38
DATE = "2010-12-01 08:26:00"
# (quantity, price, date): values at the limits of a valid line, and values beyond them.
AWKWARD = [
    *((number, "1", DATE) for number in (
        "", "0", "-0", "+7", "007", "1.5", "1e3", " 1", "x", "-", "+-1", "0x1", "1_0", "\u0663",
        "9223372036854775807", "9223372036854775808", "-9223372036854775808",
        "-9223372036854775809", NINES)),
    *(("10", number, DATE) for number in (
        "", "-0", "+7", "007.50", ".5", "-.5", "5.", ".", "-", "+-1", "1.-5", "1..5", "1e3", "1,5",
        "NaN", "0.001", "0.0001", "0.00001", "0.1234", "\u0663", "0." + "1" * 18, "9" * 34,
        "9" * 35, NINES, "000" + NINES[3:])),
    *(("1", "1", time) for time in (
        "", "2010-12-01", "2010-02-29 00:00:00", "2012-02-29 00:00:00", "1900-02-29 00:00:00",
        "2000-02-29 23:59:59", "0000-02-29 00:00:00", "2010-13-01 00:00:00", "2010-00-01 00:00:00",
        "2010-12-00 00:00:00", "2010-12-32 00:00:00", "2010-12-01T00:00:00", "2010-12-01 24:00:00",
        "2010-12-01 23:60:00", "2010-12-01 23:59:60", "2010-12-01 8:26:00.5", "2010-12-01 8:26:00",
        DATE + ".5", DATE + " ")),
]
MORE = [
    '1,2,short,1',
    '1,2,long,1,2010-12-01 08:26:00,1,1.0,EIRE,more',
    '',
    '1,2,"a ""quoted"" line\nof two\nor three",2,2010-12-01 08:26:00,1.25,"a ""b""","Land, far"',
    '1,2,ends in a carriage return,1,2010-12-01 08:26:00,1,,\u00c5land\r',
]


class Queues(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.object(queues, "RUN_SECONDS", 60))

    def hint(self, queue):
        said = io.StringIO()
        with mock.patch.object(queues, "QUEUES", [queue]), contextlib.redirect_stderr(said):
            self.assertEqual(queues.installed_queues(), [])
        return said.getvalue()

    def test_says_how_a_missing_library_is_installed(self):
        absent = self.folder / "absent"
        for queue in queues.QUEUES:
            hint = self.hint(dataclasses.replace(queue, library=absent))
            self.assertIn(f"no {absent}", hint)
            self.assertIn(f"bench/queues/install {queue.name}", hint)

    def test_says_that_the_server_is_missing(self):
        with mock.patch.object(queues, "SERVER", str(self.folder / "no-server")):
            self.assertIn("no-server", self.hint(queues.QUEUES[0]))

    def test_handles_each_item_once(self):
        lines = self.folder / "lines"
        lines.write_text("".join(f"{i:099}\n" for i in range(ITEMS)))
        for queue, folder in self.installed():
            with self.subTest(queue.name):
                figures = queue.tiny(folder, lines)
                self.assertEqual((figures["items"], figures["handled"]), (ITEMS, ITEMS))
                self.assertGreater(figures["transactions_per_second"], 0)
                self.assertGreater(figures["cpu_seconds"], 0)

    def test_bills_what_an_independent_sum_does(self):
        data = self.make_retail()
        expected, rejected = retail_sum.add_up(data)
        for queue, folder in self.installed():
            with self.subTest(queue.name):
                figures, groups = queue.retail(folder, data)
                self.assertEqual(self.differences(expected, groups), [])
                self.assertEqual(figures["rejected"], rejected)
                self.assertEqual(figures["transactions"], ROWS + len(AWKWARD) + len(MORE) - 1)
                self.assertEqual(figures["items"], 6)

    def test_adds_up_partials_exactly(self):
        partial = json.dumps({"transactions": 2, "rejected": 1,
                              "by_country_month": [[["EIRE", "2011-01"], -50, "1", 1]],
                              "by_customer": [[["7.0"], "-50", 1, 1]]})
        sums = {"revenue": "-0.050", "units": "1", "transactions": "1"}
        self.assertEqual(partials.add_up([partial]), {
            "transactions": 2, "rejected": 1, "groups": [
                {"name": "by_country_month",
                 "rows": [{"country": "EIRE", "month": "2011-01", **sums}]},
                {"name": "by_customer", "rows": [{"customer": "7.0", **sums}]}]})
        twice = partials.add_up([partial, partial])
        self.assertEqual(twice["transactions"], 4)
        self.assertEqual(twice["groups"][1]["rows"], [
            {"customer": "7.0", "revenue": "-0.100", "units": "2", "transactions": "2"}])

    def installed(self):
        """Yields each installed queue, with an empty folder."""
        for queue in queues.installed_queues():
            yield queue, pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def make_retail(self):
        """Makes a file whose last line has no line feed."""
        data = self.folder / "retail.csv"
        subprocess.run([sys.executable, source / "scripts/make_retail", "--rows", str(ROWS), data],
                       check=True)
        awkward = [f'1,2,,{quantity},{date},"{price}",{number},Land {number}'
                   for number, (quantity, price, date) in enumerate(AWKWARD)]
        with data.open("a", encoding="utf-8", newline="") as lines:
            lines.write("\n".join(awkward + MORE))
        return data

    def differences(self, expected, groups):
        report = self.folder / "report.json"
        report.write_text(json.dumps({"groups": groups}))
        return list(retail_sum.differences(expected, retail_sum.read_report(report)))


unittest.main()
