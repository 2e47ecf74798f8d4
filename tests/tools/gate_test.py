#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the gate and scripts/test over a small tree whose build and checks are stand-ins: what they say
and leave behind when tests fail once, twice or not at all.

Run by ctest: gate_test.py SOURCE_DIR
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1))
TIMEOUT_SECONDS = 120

# Stands for scripts/build: a folder with tests, as CMake would write it.
BUILD = """#!/bin/sh
mkdir -p build/dev
cp tests.cmake build/dev/CTestTestfile.cmake
"""
PASSES = 'add_test(sound "true")\n'
FAILS = 'add_test(broken "false")\n'
# Fails on the first try, and passes on the second.
FLAKY = 'add_test(flaky "sh" "-c" "echo try; test -e ../../../tried || { touch ../../../tried; exit 3; }")\n'
DEEP = 'add_test(long "false")\nset_tests_properties(long PROPERTIES LABELS deep)\n'
SKIPS = ('add_test(needy "sh" "-c" "echo skipped: there is no moon; exit 77")\n'
         'set_tests_properties(needy PROPERTIES SKIP_RETURN_CODE 77)\n')
CHECKS = ("scripts", "format", "protos")
PAGE = "# Proofs\n\n| step | commit | date | counted | result |\n|---|---|---|---|---|\n"


class Gate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-test-")
        self.addCleanup(folder.cleanup)
        # One level down, so that what a test leaves beside the tree is no change of the tree.
        self.root = pathlib.Path(folder.name) / "tree"
        self.cache = pathlib.Path(folder.name) / "cache"
        shutil.copytree(SOURCE / "scripts", self.root / "scripts")
        shutil.copytree(SOURCE / ".ci", self.root / ".ci")
        self.stand_in("scripts/build", BUILD)
        for check in CHECKS:
            self.stand_in(f"scripts/checks/{check}", "#!/bin/sh\n")
        # The machine's apt stays as it is.
        with (self.root / "scripts/lib/packages.sh").open("a") as packages:
            packages.write("\nenable_backports() { :; }\ninstall_otlp_packages() { :; }\nmissing_packages() { :; }\n")
        (self.root / "docs").mkdir()
        (self.root / "docs/proof.md").write_text(PAGE)
        (self.root / ".gitignore").write_text("build/\n")
        self.git("init", "--quiet", "--initial-branch", "main")

    def stand_in(self, path, text):
        (self.root / path).write_text(text)
        (self.root / path).chmod(0o755)

    def git(self, *arguments):
        return subprocess.run(
            ["git", "-c", "user.name=test", "-c", "user.email=test@localhost", *arguments], cwd=self.root,
            check=True, capture_output=True, text=True, timeout=TIMEOUT_SECONDS).stdout.strip()

    def commit(self, tests):
        (self.root / "tests.cmake").write_text(tests)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a state")
        return self.git("rev-parse", "HEAD")

    def run_program(self, *command):
        # Named tools are not built: this test is about the scripts around them.
        tools = {name: "/nonexistent" for name in (
            "MUSTER_NATS_SERVERS", "MUSTER_PYTHON", "MUSTER_AZURE_PYTHON", "MUSTER_AZURE_PYTHON_12_8",
            "MUSTER_AZURE_NODE_MODULES", "MUSTER_GO_HANDLER", "MUSTER_GO_CLIENT", "MUSTER_TYPESCRIPT_CLIENT",
            "MUSTER_HELM", "MUSTER_HELM4")}
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=TIMEOUT_SECONDS,
                              check=False, env={**os.environ, **tools, "XDG_CACHE_HOME": str(self.cache)})

    def green(self):
        file = self.cache / "muster/green"
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    def proof_rows(self):
        return (self.root / "docs/proof.md").read_text().removeprefix(PAGE).splitlines()

    def test_a_commit_that_passes_is_green(self):
        commit = self.commit(PASSES + DEEP)
        done = self.run_program(".ci/run")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "5 passed, 0 failed")
        self.assertIn(f"green: {commit}", done.stdout)
        self.assertEqual(self.green(), [commit])

    def test_a_test_that_fails_twice_fails_the_gate(self):
        self.commit(PASSES + FAILS)
        done = self.run_program(".ci/run")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "5 passed, 1 failed"))
        self.assertEqual((self.green(), self.proof_rows()), ([], []))
        self.assertNotIn("UNSTABLE", done.stdout)

    def test_a_test_that_passes_on_its_second_try_is_named_and_kept(self):
        commit = self.commit(PASSES + FLAKY)
        done = self.run_program(".ci/run")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "6 passed, 0 failed"))
        self.assertIn("UNSTABLE flaky", "\n".join(done.stdout.splitlines()[-10:]))
        self.assertEqual(self.green(), [commit])
        for name_of_try in ("first_try", "second_try"):
            self.assertIn("try", (self.root / f"build/ci/unstable/flaky.{name_of_try}.log").read_text())
        row, = self.proof_rows()
        self.assertIn("unstable: `flaky`", row)
        self.assertIn(commit[:12], row)

    def test_an_unstable_test_does_not_hide_one_that_is_broken(self):
        self.commit(FLAKY + FAILS)
        done = self.run_program("scripts/test")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "1 passed, 1 failed"))
        self.assertIn("UNSTABLE flaky", done.stdout)

    # Whoever looked for the first of them took its name from a pipe, and left before the rest was written.
    def test_of_many_that_are_broken_none_is_unstable(self):
        self.commit("".join(FAILS.replace("broken", f"broken_{i}") for i in range(40)))
        done = self.run_program("scripts/test")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 40 failed"))
        self.assertNotIn("UNSTABLE", done.stdout)
        self.assertEqual(self.proof_rows(), [])

    def test_deep_tests_run_only_with_all(self):
        self.commit(PASSES + DEEP)
        self.assertEqual(self.run_program("scripts/test").stdout.splitlines()[-1], "1 passed, 0 failed")
        self.assertEqual(self.run_program("scripts/test", "--all").stdout.splitlines()[-1], "1 passed, 1 failed")

    def test_names_what_it_skipped_and_why(self):
        self.commit(PASSES + SKIPS)
        self.assertEqual(self.run_program("scripts/test").stdout.splitlines()[-2:],
                         ["SKIPPED needy: there is no moon", "1 passed, 0 failed, 1 skipped"])

    def test_runs_only_what_it_is_told(self):
        self.commit(PASSES + FAILS)
        self.assertEqual(self.run_program("scripts/test", "--only", "^sound$").stdout.splitlines()[-1],
                         "1 passed, 0 failed")

    def test_a_run_that_was_interrupted_goes_on(self):
        commit = self.commit(PASSES + FLAKY)
        (self.root / "build/dev").mkdir(parents=True)
        (self.root / "build/dev/test_progress.log").write_text(
            f"{commit} \n1/2 Test #1: sound ............   Passed    0.01 sec\n")
        done = self.run_program("scripts/test", "--all", "--go-on")
        self.assertIn("leaving out 1 tests", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 0 failed", done.stdout)
        self.assertNotIn("sound", done.stdout)

    def test_changes_that_are_not_committed_are_not_green(self):
        self.commit(PASSES)
        (self.root / "new.txt").write_text("new")
        done = self.run_program(".ci/run")
        self.assertEqual(done.returncode, 0)
        self.assertIn("not marked green: the work tree is not that of a commit (?? new.txt)", done.stdout)
        self.assertEqual(self.green(), [])

    def test_one_step_alone_is_not_green(self):
        self.commit(PASSES)
        done = self.run_program(".ci/run", "format")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "1 passed, 0 failed"))
        self.assertEqual(self.green(), [])

    def test_a_failed_check_is_not_green_though_all_tests_pass(self):
        self.stand_in("scripts/checks/format", "#!/bin/sh\nexit 1\n")
        self.commit(PASSES)
        done = self.run_program(".ci/run")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "4 passed, 1 failed"))
        self.assertEqual(self.green(), [])

    def test_a_build_that_breaks_is_a_failure_though_no_test_fails(self):
        self.stand_in("scripts/build", "#!/bin/sh\nexit 1\n")
        self.commit(PASSES)
        done = self.run_program(".ci/run")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "4 passed, 1 failed"))

    def test_what_another_commit_built_is_removed(self):
        self.commit(PASSES)
        stale = self.root / "build/dev/include/gone.h"
        stale.parent.mkdir(parents=True)
        stale.touch()
        self.run_program(".ci/run")
        self.assertFalse(stale.exists())
        stale.parent.mkdir()
        stale.touch()
        self.run_program(".ci/run")
        self.assertTrue(stale.exists(), "the same commit builds on what it built")

    def test_no_step_begins_without_its_packages(self):
        self.commit(PASSES)
        with (self.root / "scripts/lib/packages.sh").open("a") as packages:
            packages.write("missing_packages() { echo some-package; }\napt_update() { false; }\n")
        done = self.run_program(".ci/run")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 1 failed"))
        self.assertIn("is there a network?", done.stdout)

    def test_a_proof_goes_on_where_it_stopped_and_writes_one_row(self):
        self.stand_in("scripts/checks/tidy", """#!/bin/sh
[ "$1" != --list ] || { echo a.cc; echo b.cc; exit; }
echo "$1" >> ../read
[ "$1" = a.cc ] || [ -e ../mended ]
""")
        commit = self.commit(PASSES)
        done = self.run_program("scripts/prove", "tidy")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "0 passed, 1 failed: tidy"))
        self.assertIn("FAILED b.cc", done.stdout)
        (self.root.parent / "mended").touch()
        done = self.run_program("scripts/prove", "tidy")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "1 passed, 0 failed"))
        read = (self.root.parent / "read").read_text().split()
        self.assertEqual((read.count("a.cc"), read.count("b.cc")), (1, 2))
        row, = self.proof_rows()
        self.assertRegex(row, rf"^\| tidy \| {commit[:12]} \| [-0-9]+ \| 2 passed, 0 failed, \d+ min \| passed \|$")

    def test_an_unknown_step_is_misuse(self):
        self.commit(PASSES)
        done = self.run_program(".ci/run", "asan")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("there is no step 'asan'", done.stderr)


if __name__ == "__main__":
    unittest.main()
