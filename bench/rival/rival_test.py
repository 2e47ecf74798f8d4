#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the rival on a small input: rival_test.py RIVAL SOURCE_DIR

Its measurements are void unless its totals are right; the rival checks the totals itself.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

rival, source = sys.argv[1:]
sys.path.insert(0, f"{source}/bench/mesh")
from programs import Server  # noqa: E402

ROWS = 20_000


def run(verb, *words):
    with (tempfile.TemporaryDirectory() as folder,
          Server("nats-server", pathlib.Path(folder)) as server):
        words = [folder + "/report.db" if word == "report.db" else str(word) for word in words]
        output = subprocess.run([rival, verb, server.url, *words], check=True,
                                stdout=subprocess.PIPE).stdout
        return json.loads(output)


with tempfile.TemporaryDirectory() as inputs:
    data = pathlib.Path(inputs) / "retail.csv"
    subprocess.run([sys.executable, f"{source}/scripts/make_retail", "--rows", str(ROWS), data],
                   check=True)
    figures = run("run", data, "report.db")
    assert (figures["items"], figures["transactions"]) == (ROWS // 500, ROWS), figures
    lines = pathlib.Path(inputs) / "lines"
    lines.write_text("one\n" * 1000)
    figures = run("tiny", lines, "report.db")
    assert (figures["items"], figures["transactions"]) == (1000, 1000), figures
for verb in ("latency", "plain"):
    figures = run(verb, 3)
    assert 0 < figures["p50_us"] <= figures["p99_us"], figures
