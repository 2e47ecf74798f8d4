# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: a muster to run, inputs, and an independent sum.

The tests know muster only by its command line; they share no code with it.
"""

import atexit
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSTER = os.environ["MUSTER"]
RETAIL_JOB = ROOT / "examples/retail/job.yaml"
TIMEOUT_SECONDS = 240
SKIPPED = 77  # the exit code of a test program that could not run, as its ctest knows

HEADER = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country"


def reference(input_file, report=None):
    """Runs tests/reference/retail_sum.py on `input_file` and returns the process; compares `report`
    if given."""
    command = [sys.executable, str(ROOT / "tests/reference/retail_sum.py"), str(input_file)]
    if report is not None:
        command += ["--compare", str(report)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)


def folder_of_program(prefix):
    """A folder that is removed with all it holds when the test program ends."""
    folder = tempfile.TemporaryDirectory(prefix=prefix)
    atexit.register(folder.cleanup)
    return pathlib.Path(folder.name)


# The gate shows each promise once, with small counts.
WITH_SMALL_COUNTS = bool(os.environ.get("MUSTER_TEST_SMALL_COUNTS"))
# As many as the published set has.
RETAIL_ROWS = 60_000 if WITH_SMALL_COUNTS else 541_909


@functools.lru_cache(maxsize=None)
def retail_input(rows):
    """A generated retail file, made once per test program and number of rows."""
    path = folder_of_program("muster-input-") / "online_retail.csv"
    subprocess.run(
        [sys.executable, str(ROOT / "scripts/make_retail"), "--rows", str(rows), "--seed", "7",
         str(path)], check=True, timeout=TIMEOUT_SECONDS)
    return path


def looks(seconds):
    """Yields until the time is over, with a pause after each look: programs that are started without one take the
    cores from those that the test waits for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(0.1)


class MusterTest(unittest.TestCase):
    """Gives each test its own folder, and helpers to use muster."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.data_dir = self.folder / "data"

    def muster(self, *arguments, cwd=None):
        """Runs muster to its end and returns the finished process."""
        return subprocess.run(
            [MUSTER, *map(str, arguments)], capture_output=True, text=True,
            timeout=TIMEOUT_SECONDS, cwd=cwd or self.folder)

    def run_arguments(self, input_file, *more, job=RETAIL_JOB):
        return ["run", str(job), "--input", str(input_file), "--data-dir", str(self.data_dir),
                "-o", "json", *map(str, more)]

    def run_job(self, input_file, *more, job=RETAIL_JOB):
        """Runs a job; returns (exit code, the JSON object or None, stderr)."""
        done = self.muster(*self.run_arguments(input_file, *more, job=job))
        result = json.loads(done.stdout) if done.stdout.strip() else None
        return done.returncode, result, done.stderr

    def start_run(self, input_file, *more, job=RETAIL_JOB):
        """Starts a run and returns the process."""
        return subprocess.Popen(
            [MUSTER, *self.run_arguments(input_file, *more, job=job)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=self.folder)

    def write(self, name, content):
        path = self.folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
        return path

    def retail_rows(self, *rows, name="input.csv"):
        """A retail file of rows given as (quantity, price, customer, country)."""
        lines = [HEADER]
        for quantity, price, customer, country in rows:
            lines.append(f"1,A,thing,{quantity},2010-12-01 08:26:00,{price},{customer},{country}")
        return self.write(name, "\n".join(lines) + "\n")

    def report(self, batch, *more):
        done = self.muster("report", batch, "--data-dir", self.data_dir, "-o", "json", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def rows(self, batch, group):
        """Returns the rows of the group of this name."""
        [found] = [g for g in self.report(batch)["groups"] if g["name"] == group]
        return found["rows"]

    def assert_report_is_the_direct_sum(self, input_file, batch):
        report = self.write("report.json", json.dumps(self.report(batch)))
        compared = reference(input_file, report)
        self.assertEqual(compared.returncode, 0, compared.stdout + compared.stderr)

    def assert_receipt_holds(self, batch):
        done = self.muster("batch", "receipt", batch, "--verify", "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def assert_all_accounted_for(self, result):
        self.assertEqual(
            result["transactions"],
            result["aggregated"] + result["rejected"] + result["dead_lettered"], result)


def main():
    """Ends with SKIPPED when every test was skipped: such a run proves nothing."""
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    # A class that is skipped as a whole is in the list, and its tests are not among those that were run; a
    # test is in the list once for each of its parts that was skipped.
    skipped = {getattr(test, "test_case", test).id() for test, _ in result.skipped
               if isinstance(test, unittest.TestCase)}
    sys.exit(SKIPPED if result.skipped and result.testsRun == len(skipped) else 0)
