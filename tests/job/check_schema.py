#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds schema/KIND.schema.json against the samples in tests/KIND: it must accept what the parser
accepts, and refuse what the parser refuses, except for files with '# beyond the schema'.

Usage: check_schema.py REPOSITORY KIND EXAMPLES     EXAMPLES: a pattern of valid files
"""

import json
import pathlib
import sys

import jsonschema
import yaml


def refusal(validator, text):
    """Returns why the schema refuses a file, or None."""
    error = jsonschema.exceptions.best_match(validator.iter_errors(yaml.safe_load(text)))
    return error and error.message


def main(repository, kind, examples):
    schema = json.loads((repository / f"schema/{kind}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    samples = repository / "tests" / kind
    valid = sorted(samples.glob("valid/*.yaml")) + sorted(repository.glob(examples))
    invalid = sorted(samples.glob("invalid/*.yaml"))
    mistakes = 0
    for path in valid + invalid:
        text = path.read_text()
        why = refusal(validator, text)
        accept = path in valid or "# beyond the schema" in text
        if accept == (why is None):
            continue
        mistakes += 1
        print(f"{path}: the schema should {'accept' if accept else 'refuse'} it: {why}")
    print(f"{len(valid)} valid and {len(invalid)} invalid {kind} files, {mistakes} mistakes")
    return 1 if mistakes or not valid or not invalid else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), *sys.argv[2:]))
