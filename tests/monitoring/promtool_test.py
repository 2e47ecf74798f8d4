#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prometheus's own checks: of the rules, and of the tests of each: alerts fire and resolve, records are right."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

import monitoring
from monitoring import RECORDING, RULES, RULES_TEST

ASKED = re.compile(r'^ALERTS\{alertname="(\w+)",alertstate="firing"\}$')


class PromtoolTest(unittest.TestCase):
    def setUp(self):
        self.promtool = monitoring.find("promtool")
        if self.promtool is None:
            self.skipTest("there is no promtool")

    def run_promtool(self, *arguments):
        return subprocess.run([self.promtool, *arguments], capture_output=True, text=True)

    def assert_passes(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_rules_are_sound(self):
        self.assert_passes(self.run_promtool("check", "rules", RULES, RECORDING))

    def test_the_tests_pass(self):
        self.assert_passes(self.run_promtool("test", "rules", RULES_TEST))

    def test_each_alert_has_a_test_in_which_it_fires_and_is_quiet_before_and_after(self):
        times = {rule["alert"]: [] for rule in monitoring.alerts()}
        for test in monitoring.read_yaml(RULES_TEST)["tests"]:
            asked = {}
            for one in test.get("promql_expr_test", []):
                minutes = int(one["eval_time"].removesuffix("m"))
                if alert := ASKED.match(one["expr"]):
                    asked.setdefault(alert[1], []).append((minutes, bool(one["exp_samples"])))
            for alert, answers in asked.items():
                times[alert].append([fires for _, fires in sorted(answers)])
        for alert, answers in times.items():
            self.assertTrue(any([*dict.fromkeys(each)] == [True, False] or
                                ([each[0], each[-1]] == [False, False] and True in each)
                                for each in answers), f"{alert}: {answers}")

    def test_each_record_has_a_test(self):
        asked = {name for test in monitoring.read_yaml(RULES_TEST)["tests"]
                 for one in test.get("promql_expr_test", []) if one["exp_samples"]
                 for name, _ in monitoring.selectors(one["expr"])}
        self.assertLessEqual({rule["record"] for rule in monitoring.recordings()}, asked)

    def test_without_the_rules_the_tests_of_each_fail(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "rules.yaml").write_text("groups: []\n")
            tests = {**monitoring.read_yaml(RULES_TEST), "rule_files": ["rules.yaml"]}
            (folder / "test.yaml").write_text(yaml.safe_dump(tests))
            done = self.run_promtool("test", "rules", folder / "test.yaml")
        self.assertNotEqual(done.returncode, 0)
        printed = done.stdout + done.stderr
        failed = set(re.findall(r'alertname=\\*"(\w+)\\*"', printed))
        self.assertLessEqual({rule["alert"] for rule in monitoring.alerts()}, failed)
        for rule in monitoring.recordings():
            self.assertRegex(printed, rf'expr: "[^"\n]*{rule["record"]}')


if __name__ == "__main__":
    monitoring.main()
