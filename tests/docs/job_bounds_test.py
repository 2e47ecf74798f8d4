#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds muster against docs/job_file.md: `muster job check` takes every example and every bound, and refuses
what lies just beyond it; a batch is counted at every bound."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUSTER = os.environ["MUSTER"]
RETAIL_JOB = ROOT / "examples/retail/job.yaml"
ROW = re.compile(r"^\| `([^`]+)` \| (.*?) \| .*? \| (.*?) \| `(.*?)` \|", re.MULTILINE)
NANOSECONDS = {"d": 86_400_000_000_000, "h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000,
               "ms": 1_000_000, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
# What has to be as long as the key, for the key's longest value to make sense.
TOGETHER = {"retention.content": ["retention.items", "retention.batch"],
            "retention.items": ["retention.batch"]}
# Counts every transaction in each group of the job beside it, and gives a record for each of its outputs.
HANDLER = """#!/usr/bin/env python3
import json, sys, yaml
job = yaml.safe_load(open("job.yaml"))
for line in sys.stdin:
    item = json.loads(line)
    answer = {"item": item["item"], "outcome": "ok", "groups": {}}
    for group in job.get("groups", []):
        row = {key: "k" for key in group["keys"]} | {measure: len(item["transactions"]) for measure in group["measures"]}
        answer["groups"][group["name"]] = [row]
    if "outputs" in job:
        record = {column: 1 for column in job["outputs"]["columns"]}
        answer["outputs"] = [{"line": t["line"], "record": record} for t in item["transactions"]]
    print(json.dumps(answer), flush=True)
"""
# Not the time that a busy machine needs for three records; the batch is late, and counted all the same.
TOO_SHORT_TO_TRY = {"handler.deadline"}
LATE = {"sla.max": 4}


def rows():
    return ROW.findall((ROOT / "docs/job_file.md").read_text(encoding="utf-8"))


def sections(values):
    """A small job file with `values`, {key: YAML text}, in the place of its own."""
    parts = {"input": {"format": "csv", "columns": "{project: Project}"},
             "handler": {"command": "[sh]"},
             "groups[]": {"name": "by_project", "keys": "[project]", "measures": "{hours: int}"}}
    tops = {"name": "bounds"}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        if not section:
            tops[name] = value
            continue
        if name in ("linked", "grpc"):
            del parts["handler"]["command"]
        parts.setdefault(section, {})[name] = value
    if parts["input"]["format"] == "lines":
        del parts["input"]["columns"]
    if parts["input"].get("header") == "false":
        parts["input"]["columns"] = "{project: 1}"
    if "optional" in parts["input"]:
        parts["input"].update(format="jsonl", columns=parts["input"]["optional"])
    lines = [f"{name}: {value}" for name, value in tops.items()]
    for section, keys in parts.items():
        text = "{" + ", ".join(f"{name}: {value}" for name, value in keys.items()) + "}"
        if section != "groups[]":
            lines.append(f"{section}: {text}")
        elif "groups" not in tops:
            lines.append(f"groups: [{text}]")
    return "\n".join(lines) + "\n"


def amount(text):
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]+)", text).groups()
    return int(number) * NANOSECONDS[unit]


def as_bytes(value):
    return str(value)


def as_duration(value):
    return f"{value}ns"


def entries(key):
    """Writes a list or a map of so many entries for `key`."""
    def write(count):
        if key == "groups":
            groups = (f"{{name: g{i}, keys: [k], measures: {{m: int}}}}" for i in range(count))
            return f"[{', '.join(groups)}]"
        if key in ("handler.env", "groups[].measures", "outputs.columns"):
            value = "x" if key == "handler.env" else "int"
            return "{" + ", ".join(f"e{i}: {value}" for i in range(count)) + "}"
        # `sh`, so that the program of a command is one.
        return "[" + ", ".join(["sh" if i == 0 else f"e{i}" for i in range(count)]) + "]"
    return write


def span(key, kind, bounds):
    """(lowest, highest, how to write one) of the bounds of the page."""
    low, high = bounds.split(" entries")[0].replace(",", "").split(" to ")
    if kind == "size":
        return amount(low), amount(high), as_bytes
    if kind.startswith("duration"):
        return amount(low), amount(high), as_duration
    return int(low), int(high), entries(key) if bounds.endswith("entries") else str


class JobBoundsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-bounds-")
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "job.yaml"

    def check(self, values):
        self.file.write_text(sections(values), encoding="utf-8")
        return subprocess.run([MUSTER, "job", "check", "--no-start", self.file], capture_output=True, text=True, timeout=60,
                              env={"PATH": os.environ["PATH"]})

    def assert_taken(self, values):
        done = self.check(values)
        self.assertEqual(done.returncode, 0, f"{self.file.read_text()}{done.stderr}")

    def assert_refused(self, key, values):
        done = self.check(values)
        self.assertEqual(done.returncode, 1, f"{self.file.read_text()}{done.stdout}")
        self.assertIn(key.rpartition(".")[2], done.stderr)

    def test_every_example_of_the_page_is_taken(self):
        self.assertGreater(len(rows()), 25)
        for key, _, _, example in rows():
            with self.subTest(key):
                if key == "handler.linked":  # asks for the columns that it reads
                    self.assertIn(f"handler: {{{example}}}", RETAIL_JOB.read_text(encoding="utf-8"))
                    continue
                # A script has to be there.
                value = example.partition(": ")[2].replace("timesheet.py", "-V")
                needs = {"order_by": "project"} if key == "on_poison" else {}
                self.assert_taken({**needs, key: value})

    def test_every_bound_of_the_page_is_taken_and_what_lies_beyond_it_refused(self):
        bounded = [(key, *span(key, kind, bounds)) for key, kind, bounds, _ in rows() if bounds]
        self.assertGreater(len(bounded), 15)
        for key, low, high, write in bounded:
            with self.subTest(key):
                self.assert_taken({key: write(low)})
                self.assert_taken({name: write(high) for name in [key, *TOGETHER.get(key, [])]})
                if low > 0:
                    self.assert_refused(key, {key: write(low - 1)})
                self.assert_refused(key, {name: write(high + 1) for name in [key, *TOGETHER.get(key, [])]})

    def write_input(self, job):
        """Three records of what the job reads; returns the file."""
        columns = job["input"].get("columns", {})
        names = list(columns.values() if isinstance(columns, dict) else columns)
        path = self.file.with_name("input")
        if job["input"]["format"] == "csv":
            record = ",".join("x" for _ in names)
            head = [] if job["input"].get("header") is False else [",".join(map(str, names))]
            lines = [*head, record, record, record]
        elif job["input"]["format"] == "jsonl":
            lines = [json.dumps({name: "x" for name in names})] * 3
        else:
            lines = ["x"] * 3
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def assert_counted(self, key, values):
        handler = self.file.with_name("handler.py")
        handler.write_text(HANDLER, encoding="utf-8")
        handler.chmod(0o755)
        values = {"handler.command": "[./handler.py]", **values}
        if key == "handler.command":
            values[key] = values[key].replace("sh", "./handler.py", 1)
        self.file.write_text(sections(values), encoding="utf-8")
        path = self.write_input(yaml.safe_load(self.file.read_text(encoding="utf-8")))
        folder = tempfile.TemporaryDirectory(prefix="muster-bounds-")
        self.addCleanup(folder.cleanup)
        done = subprocess.run([MUSTER, "run", self.file, "--input", path, "--data-dir", folder.name, "--threads", "1", "-q"],
                              capture_output=True, text=True, timeout=120, env={"PATH": os.environ["PATH"]})
        self.assertIn("3 transactions = 3 aggregated", done.stdout, f"{values}{done.stderr}")
        self.assertIn(done.returncode, {0, LATE.get(key, 0)}, f"{values}{done.stderr}")

    def test_a_batch_is_counted_at_every_bound(self):
        for key, kind, bounds, _ in rows():
            if not bounds or key in ("handler.linked", "handler.grpc"):
                continue
            low, high, write = span(key, kind, bounds)
            with self.subTest(key):
                if key not in TOO_SHORT_TO_TRY:
                    self.assert_counted(key, {key: write(low)})
                self.assert_counted(key, {name: write(high) for name in [key, *TOGETHER.get(key, [])]})


if __name__ == "__main__":
    unittest.main(verbosity=0, argv=sys.argv)
