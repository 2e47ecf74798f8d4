# SPDX-License-Identifier: Apache-2.0
"""What the tests of dashboards and alerts share: the files, and the metrics that a query names."""

import json
import os
import pathlib
import re
import shutil
import sys
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "deploy/grafana/dashboards"
RULES = ROOT / "deploy/prometheus/muster.rules.yaml"
RECORDING = ROOT / "deploy/prometheus/muster.recording.yaml"
RULES_TEST = ROOT / "tests/monitoring/rules_test.yaml"
COMPOSE = ROOT / "deploy/compose"
SKIPPED = 77  # the exit code of a test program that could not run, as its ctest knows
# Labels that Prometheus or a cluster gives to each series, and those of histograms.
TARGET_LABELS = {"job", "instance", "namespace", "le"}
KEYWORDS = {"and", "or", "unless", "offset", "bool", "inf", "nan"}


def read_yaml(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def dashboards():
    return {path: json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(DASHBOARDS.glob("*.json"))}


def panels(board):
    """The panels with queries."""
    return [panel for panel in board["panels"] if panel["type"] not in ("row", "text")]


def alerts():
    return [rule for group in read_yaml(RULES)["groups"] for rule in group["rules"]]


def recordings():
    return [rule for group in read_yaml(RECORDING)["groups"] for rule in group["rules"]]


def level(record):
    """The labels that are left, by the name of what is recorded."""
    return set(record.partition(":")[0].split("_"))


def catalogue():
    """The series of docs/operations/metrics.md, with their labels. A unit test holds the page to the programs."""
    series = {"up": set()}
    for line in (ROOT / "docs/operations/metrics.md").read_text(encoding="utf-8").splitlines():
        if not line.startswith("| `"):
            continue
        name, kind, _, labels, _, _ = [cell.strip() for cell in line.strip("|").split("|")]
        endings = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        for ending in endings:
            series[name.strip("`") + ending] = {label.strip() for label in labels.split(",")} - {""}
    return series


def selectors(expression):
    """(metric, matchers as text) of each selector of a query."""
    found = []
    texts = []

    def keep(match):
        texts.append(match[0])
        return f"{{{len(texts) - 1}}}"

    bare = re.sub(r'\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}', keep, expression)
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", bare)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", bare)
    bare = re.sub(r"\boffset\s+\w+", " ", bare)
    for match in re.finditer(r"(?<![\w.])([a-zA-Z_:][\w:]*)(\{\d+\})?(\s*\()?", bare):
        name, matchers, call = match.groups()
        if call is None and name not in KEYWORDS:
            found.append((name, texts[int(matchers[1:-1])] if matchers else ""))
    return found


def matched_labels(matchers):
    return set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"(?:[^"\\]|\\.)*"', '""', matchers)))


def find(program):
    """A program of Debian's prometheus package."""
    return shutil.which(program)


def program(variable):
    """The program that a variable of the environment names; skips the test without it."""
    if not os.environ.get(variable):
        raise unittest.SkipTest(f"{variable} names no program")
    return os.environ[variable]


def main():
    """Ends with SKIPPED when every test was skipped: such a run proves nothing."""
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    # A class that is skipped as a whole has no test that was run, and is in the list, too.
    skipped = [test for test, _ in result.skipped if isinstance(test, unittest.TestCase)]
    sys.exit(SKIPPED if result.skipped and result.testsRun == len(skipped) else 0)
