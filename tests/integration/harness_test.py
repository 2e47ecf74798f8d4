# SPDX-License-Identifier: Apache-2.0
"""The exit codes of a test program."""

import subprocess
import sys
import unittest
from pathlib import Path

import harness

PASS = "pass"
SKIP = "self.skipTest('nothing is here')"
FAIL = "self.fail('it is broken')"
SKIPPED_CLASS = """class S(harness.unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise harness.unittest.SkipTest('nothing is here')
    def test_one(self):
        pass
    def test_two(self):
        pass
"""


class MainTest(unittest.TestCase):
    def assert_ends(self, code, *bodies, before=""):
        """`before`: classes that stand before the one that has a test of each body."""
        tests = "".join(f"    def test_{n}(self):\n        {body}\n" for n, body in enumerate(bodies))
        own = f"class T(harness.unittest.TestCase):\n{tests}\n" if bodies else ""
        program = f"import harness\n{before}{own}harness.main()\n"
        done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parent,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)

    def test_a_program_that_skips_all_its_tests_is_skipped(self):
        self.assert_ends(77, SKIP, SKIP)

    def test_one_whose_class_is_skipped_as_a_whole_is_skipped(self):
        self.assert_ends(77, before=SKIPPED_CLASS)
        self.assert_ends(77, SKIP, before=SKIPPED_CLASS)

    def test_one_that_shows_something_beside_such_a_class_passes(self):
        self.assert_ends(0, PASS, before=SKIPPED_CLASS)

    def test_one_whose_test_skips_each_of_its_parts_is_skipped(self):
        parts = "[self.part(n) for n in range(3)]"
        before = ("class P:\n    def part(self, n):\n        with self.subTest(n):\n            "
                  f"{SKIP}\n")
        program = before + "class T(P, harness.unittest.TestCase):\n    def test(self):\n        " + parts + "\n"
        self.assert_ends(77, before=program)
        self.assert_ends(0, PASS, before=program.replace("class T(", "class U("))

    def test_one_that_shows_something_passes(self):
        self.assert_ends(0, SKIP, PASS)

    def test_one_that_fails_has_failed_whatever_it_skips(self):
        self.assert_ends(1, SKIP, FAIL)


if __name__ == "__main__":
    harness.main()
