# SPDX-License-Identifier: Apache-2.0
"""The output of `muster completion`, in the shells that it supports."""

import shutil
import subprocess
import unittest

import harness
from harness import MusterTest


class BashTest(MusterTest):
    def complete(self, *words):
        """Returns what bash offers when TAB is pressed behind the last of these words."""
        script = ('source <("$1" completion bash); shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                  '_muster muster; (( ${#COMPREPLY[@]} == 0 )) || printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-uc", script, "bash", harness.MUSTER, "muster", *words],
                              capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_it_is_what_bash_asks_for_muster(self):
        done = subprocess.run(
            ["bash", "-c", 'source <("$1" completion bash); complete -p muster', "bash",
             harness.MUSTER], capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(done.stderr, "")
        self.assertIn("-F _muster muster", done.stdout)

    def test_it_offers_the_commands_at_each_level(self):
        self.assertEqual(self.complete("ba"), ["batch"])
        self.assertEqual(sorted(self.complete("batch", "")), sorted(
            ["quote", "submit", "watch", "cancel", "list", "get", "receipt", "output",
             "rejections", "dead-letters", "delete", "retry"]))
        self.assertEqual(sorted(self.complete("batch", "re")), ["receipt", "rejections", "retry"])
        self.assertEqual(sorted(self.complete("completion", "")), ["bash", "fish", "zsh"])
        self.assertNotIn("serve-handler", self.complete(""))

    def test_it_offers_the_options_of_the_command(self):
        self.assertEqual(self.complete("batch", "submit", "retail", "--request"), ["--request-id"])
        self.assertEqual(self.complete("batch", "list", "--request"), [])
        self.assertIn("--verify", self.complete("batch", "receipt", "7", "-"))

    def test_it_offers_the_choices_of_an_option(self):
        formats = ["table", "json", "yaml"]
        self.assertEqual(self.complete("batch", "list", "-o", ""), formats)
        self.assertEqual(self.complete("batch", "list", "--output", "j"), ["json"])
        self.assertEqual(self.complete("batch", "list", "--output", "=", "y"), ["yaml"])
        self.assertEqual(self.complete("batch", "list", "--output", "="), formats)
        self.assertEqual(self.complete("report", "1", "-o", "c"), ["csv"])

    def test_it_leaves_file_names_to_bash(self):
        self.assertEqual(self.complete("run", "jo"), [])
        self.assertEqual(self.complete("run", "job.yaml", "--input", "ba"), [])

    def test_a_value_that_looks_like_a_command_is_none(self):
        self.assertEqual(self.complete("batch", "submit", "get", "--wat"), ["--watch"])


class SyntaxTest(MusterTest):
    def assert_is_read_by(self, shell):
        script = self.write(f"muster.{shell}", self.muster("completion", shell).stdout)
        done = subprocess.run([shell, "-n", script], capture_output=True, text=True,
                              timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_bash_reads_its_script(self):
        self.assert_is_read_by("bash")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_reads_its_script(self):
        self.assert_is_read_by("zsh")

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_reads_its_script(self):
        self.assert_is_read_by("fish")

    def test_another_shell_is_a_misuse(self):
        self.assertEqual(self.muster("completion", "tcsh").returncode, 2)


if __name__ == "__main__":
    harness.main()
