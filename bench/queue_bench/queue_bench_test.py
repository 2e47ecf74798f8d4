#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs queue_bench on a few messages and checks that its output is complete.

    queue_bench_test.py QUEUE_BENCH

The test checks that each step has figures, not that the figures are good. It checks the steps beside
beanstalkd where beanstalkd is installed.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

VERBS = ("put_32", "receive_32_delete")
PLACES = ("at_depth_1000", "after_3000_passed", "at_depth_3000", "over_8_queues")
BESIDE_RAW = [f"{verb}_{place}" for place in PLACES for verb in VERBS] + ["put_1_from_16_threads"]
BESIDE_BEANSTALKD = [
    f"{verb}_beside_beanstalkd" for verb in (*VERBS, "put_1_from_16_threads")]
VALUES = {"memory_at_depth": "bytes_per_ready_message", "close_at_depth": "seconds",
          "reopen_at_depth": "seconds"}


def run(program):
    """The lines that the program prints; its directory must be gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="queue-bench-") as folder:
        directory = pathlib.Path(folder) / "data"
        command = [program, "--messages", "1024", "--depth", "3000", "--queues", "8",
                   "--passed", "3000", "--beanstalkd", "32", str(directory)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        assert not directory.exists(), "it left its directory behind"
    return [json.loads(line) for line in output.splitlines()]


def check_rates(line, other):
    """Both sides have a rate."""
    assert line["messages_per_second"] > 0 and line[f"{other}_per_second"] > 0, line
    assert line["ratio"] >= 0, line


def check_flatness(lines):
    """Each verb's worst place is one of those measured, by rate and by ratio to raw."""
    told = {(line["verb"], line["of"]) for line in lines}
    assert told == {(verb, of) for verb in VERBS for of in ("rate", "ratio_to_raw")}, lines
    for line in lines:
        assert line["worst"] in PLACES and 0 <= line["to_best"] <= 1, line


def main():
    lines = run(sys.argv[1])
    check_flatness([line for line in lines if line["step"] == "flatness"])
    others = [line for line in lines if line["step"] != "flatness"]
    steps = {line["step"]: line for line in others}
    assert len(steps) == len(others), "a step is told twice"
    for step in BESIDE_RAW:
        check_rates(steps.pop(step), "raw")
    for step, unit in VALUES.items():
        assert isinstance(steps.pop(step)[unit], float), step
    if "skipped" in steps.get("beside_beanstalkd", {}):
        print(steps.pop("beside_beanstalkd")["skipped"])
    else:
        for step in BESIDE_BEANSTALKD:
            check_rates(steps.pop(step), "beanstalkd")
    assert not steps, f"unknown steps: {sorted(steps)}"


if __name__ == "__main__":
    main()
