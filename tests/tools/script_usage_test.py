#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the scripts' usage errors and help texts: they must not install or build anything.

Run by ctest: script_usage_test.py SOURCE_DIR
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
TIMEOUT_SECONDS = 60


class ScriptUsage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_script(self, name, *arguments):
        return subprocess.run([SOURCE / "scripts" / name, *arguments], capture_output=True, text=True,
                              timeout=TIMEOUT_SECONDS, cwd=self.folder,
                              env={**os.environ, "MUSTER_MESH_DIR": self.folder + "/mesh"})

    def assert_misuse(self, name, *arguments, says):
        done = self.run_script(name, *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"{name}: {says}\n"))
        self.assertFalse(os.listdir(self.folder))

    def test_an_option_without_its_value_is_misuse(self):
        for name, *arguments, value in (
                ("demo", "--input", "a file"), ("test", "--preset", "a name"),
                ("mesh", "up", "--processors", "a number"), ("mesh", "up", "--port", "a number"),
                ("mesh", "up", "--preset", "a name"), ("fuzz", "--seconds", "a number"),
                ("fuzz", "--runs", "a number"), ("kubernetes", "start", "a folder")):
            says = f"{arguments[-1]} needs {value}"
            self.assert_misuse(name, *arguments, says=says)
            self.assert_misuse(name, *arguments, "", says=says)

    def test_a_file_that_is_not_there_is_misuse(self):
        for path in ("none.csv", "none/none.csv"):
            self.assert_misuse("demo", "--input", path, says=f"there is no file '{path}'")
        self.assert_misuse("mesh", "up", "--scaling", "none.yaml",
                           says="there is no rules file 'none.yaml'")

    def test_each_tells_what_it_does(self):
        for name in ("build", "demo", "fuzz", "kubernetes", "make_api_docs", "mesh", "prove", "release",
                     "test", "checks/tidy"):
            script = SOURCE / "scripts" / name
            for called in (script, f"./{script.name}"):
                done = subprocess.run([called, "--help"], cwd=script.parent, capture_output=True,
                                      text=True, timeout=TIMEOUT_SECONDS)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)
                self.assertIn(f"scripts/{name}", done.stdout)


if __name__ == "__main__":
    unittest.main()
