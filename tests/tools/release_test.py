#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs scripts/release over a copy of this repository's tree: what it refuses, and what it makes.

Run by ctest: release_test.py SOURCE_DIR
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
TIMEOUT_SECONDS = 120
VERSION = re.search(r"project\(muster VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]


class ReleaseTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-test-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        self.output = pathlib.Path(folder.name) / "release"
        for name in ("scripts", "proto", "clients/python", "helm"):
            shutil.copytree(SOURCE / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(SOURCE / "CMakeLists.txt", self.root)
        (self.root / ".gitignore").write_text("build/\n")
        self.write_changelog(f"## {VERSION} - 2026-01-02")
        self.git("init", "--quiet", "--initial-branch", "main")
        self.commit()

    def write_changelog(self, section):
        (self.root / "CHANGELOG.md").write_text(f"# Changelog\n\n{section}\n\nIt works.\n\n## 0.0.1 - 2025-01-01\n")

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments],
                       cwd=self.root, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a state")

    def release(self, *arguments, version=VERSION):
        return subprocess.run(["scripts/release", version, "--output", self.output, *arguments], cwd=self.root,
                              capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False,
                              env={**os.environ, "MUSTER_HELM": "/nonexistent"})

    def assert_refused(self, done, says):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(says, done.stderr)
        self.assertFalse(self.output.exists())

    def test_makes_what_it_is_told_with_checksums(self):
        given = self.root.parent / "packages"
        given.mkdir()
        (given / f"muster_{VERSION}_amd64.deb").write_text("a package")
        done = self.release("--only", "source,packages,python", "--packages", given)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        sums = dict(reversed(line.split("  ")) for line in (self.output / "SHA256SUMS").read_text().splitlines())
        self.assertEqual(set(sums), {f.name for f in self.output.iterdir()} - {"SHA256SUMS"})
        for name, expected in sums.items():
            self.assertEqual(hashlib.sha256((self.output / name).read_bytes()).hexdigest(), expected)
        self.assertIn(f"muster_{VERSION}_amd64.deb", sums)
        self.assertIn(f"muster-{VERSION}-py3-none-any.whl", sums)
        sources = [name for name in sums if name.endswith(".tar.gz")]
        self.assertEqual(len(sources), 2, "of the tree and of the Python client have names of their own")
        trees = [tarfile.open(self.output / name).getnames() for name in sources]
        self.assertTrue(any(f"muster-{VERSION}/helm/muster/Chart.yaml" in names for names in trees))

    def test_gives_a_section_without_a_date_that_of_today(self):
        self.write_changelog(f"## {VERSION} - Unreleased")
        self.commit()
        self.assert_refused(self.release("--only", "source"), "commit it, and run this again")
        text = (self.root / "CHANGELOG.md").read_text()
        self.assertRegex(text, rf"## {re.escape(VERSION)} - 20\d\d-\d\d-\d\d\n")
        self.assertIn("## 0.0.1 - 2025-01-01", text)
        self.commit()
        self.assertEqual(self.release("--only", "source").returncode, 0)

    def test_refuses_what_is_not_one_version_of_one_commit(self):
        self.assert_refused(self.release(version="9.9.9"), f"CMakeLists.txt has version {VERSION}, not 9.9.9")
        (self.root / "new.txt").write_text("new")
        self.assert_refused(self.release(), "not committed")
        (self.root / "new.txt").unlink()
        self.write_changelog("## 9.9.9 - 2026-01-02")
        self.commit()
        self.assert_refused(self.release(), "the newest section of CHANGELOG.md is '## 9.9.9 - 2026-01-02'")

    def test_leaves_no_part_out_silently(self):
        done = self.release("--only", "chart")
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.output / "SHA256SUMS").exists())
        self.assertEqual(self.release("--only", "moon").returncode, 2)

    def test_adds_nothing_to_a_folder_that_is_not_empty(self):
        self.output.mkdir()
        (self.output / "older.deb").write_text("older")
        done = self.release("--only", "source")
        self.assertEqual((done.returncode, [f.name for f in self.output.iterdir()]), (1, ["older.deb"]))


if __name__ == "__main__":
    unittest.main()
