#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what ctest wrote of a run, and of the second try of its failed tests.

  test_results.py count RESULTS [BEFORE]    "N passed, N failed[, N skipped]"; BEFORE others passed, too
  test_results.py skipped RESULTS           "SKIPPED NAME: why", a line each
  test_results.py slowest RESULTS N         the N tests that took longest
  test_results.py failed RESULTS            the names of the failed tests, a line each
  test_results.py keep RESULTS FOLDER TRY   what the failed tests printed, in FOLDER/NAME.TRY.log
  test_results.py keep_all RESULTS FOLDER TRY   the same of all tests
  test_results.py merge RESULTS SECOND      puts the second try's results in the place of the first's

RESULTS and SECOND are the files of `ctest --output-junit`.
"""
import os
import sys
import xml.etree.ElementTree as xml


def cases(path):
    return xml.parse(path).getroot().findall("testcase")


def failed(path):
    return [case for case in cases(path) if case.get("status") == "fail"]


def skipped_cases(path):
    return [case for case in cases(path) if case.get("status") not in ("run", "fail")]


def print_skipped(path):
    """A test says why it is skipped in a line of its own."""
    for case in skipped_cases(path):
        said = [line.removeprefix("skipped: ") for line in (case.findtext("system-out") or "").splitlines()
                if line.startswith("skipped: ")]
        print(f"SKIPPED {case.get('name')}: {said[-1] if said else 'it does not say why'}")


def count(path, before=0):
    states = [case.get("status") for case in cases(path)]
    skipped = len(skipped_cases(path))
    line = f"{states.count('run') + int(before)} passed, {states.count('fail')} failed"
    print(line + (f", {skipped} skipped" if skipped else ""))


def slowest(path, number):
    by_time = sorted(cases(path), key=lambda case: -float(case.get("time") or 0))
    for case in by_time[:int(number)]:
        print(f"{float(case.get('time') or 0):7.1f} s  {case.get('name')}")


def print_failed(path):
    for case in failed(path):
        print(case.get("name"))


def keep(path, folder, name_of_try):
    write_logs(failed(path), folder, name_of_try)


def keep_all(path, folder, name_of_try):
    write_logs(cases(path), folder, name_of_try)


def write_logs(of_cases, folder, name_of_try):
    os.makedirs(folder, exist_ok=True)
    for case in of_cases:
        with open(os.path.join(folder, f"{case.get('name')}.{name_of_try}.log"), "w", encoding="utf-8") as log:
            log.write(case.findtext("system-out") or "")


def merge(path, second):
    tree = xml.parse(path)
    again = {case.get("name"): case for case in cases(second)}
    root = tree.getroot()
    for index, case in enumerate(list(root)):
        if case.tag == "testcase" and case.get("name") in again:
            root[index] = again[case.get("name")]
    tree.write(path, encoding="utf-8", xml_declaration=True)


VERBS = {"count": count, "skipped": print_skipped, "slowest": slowest, "failed": print_failed, "keep": keep,
         "keep_all": keep_all, "merge": merge}

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in VERBS:
        sys.exit(__doc__)
    VERBS[sys.argv[1]](*sys.argv[2:])
