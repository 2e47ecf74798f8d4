"""The exit codes of a test program."""

import subprocess
import sys
import unittest
from pathlib import Path

import harness

PASS = "pass"
SKIP = "self.skipTest('nothing is here')"
FAIL = "self.fail('it is broken')"


class MainTest(unittest.TestCase):
    def assert_ends(self, code, *bodies):
        tests = "".join(f"    def test_{n}(self):\n        {body}\n" for n, body in enumerate(bodies))
        program = f"import harness\nclass T(harness.unittest.TestCase):\n{tests}\nharness.main()\n"
        done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)

    def test_a_program_that_skips_all_its_tests_is_skipped(self):
        self.assert_ends(77, SKIP, SKIP)

    def test_one_that_shows_something_passes(self):
        self.assert_ends(0, SKIP, PASS)

    def test_one_that_fails_has_failed_whatever_it_skips(self):
        self.assert_ends(1, SKIP, FAIL)


if __name__ == "__main__":
    harness.main()
