#!/usr/bin/env python3
"""Checks that what the pages point at is there.

    docs_test.py REPOSITORY

Relative links in Markdown files lead to files, and each `Suite.Test` that docs/requirements.md names
is a test in the source.
"""

import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
CITED_TEST = re.compile(r"`(\w+)\.([A-Z]\w+)`")
DEFINED_TEST = re.compile(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)


def pages(root):
    yield from (page for page in root.glob("*.md"))
    for folder in ("docs", "bench", "clients", "examples", "muster", "services", "cli", "tests"):
        yield from (root / folder).rglob("*.md")


def broken_links(root):
    for page in pages(root):
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                yield f"{page.relative_to(root)}: no such file: {target}"


def unknown_tests(root):
    defined = set()
    for folder in ("muster", "services", "cli", "examples", "tests", "bench"):
        for source in (root / folder).rglob("*.cc"):
            defined.update(DEFINED_TEST.findall(source.read_text(encoding="utf-8")))
    page = root / "docs" / "requirements.md"
    for suite, test in CITED_TEST.findall(page.read_text(encoding="utf-8")):
        if (suite, test) not in defined:
            yield f"docs/requirements.md: no such test: {suite}.{test}"


def main():
    root = pathlib.Path(sys.argv[1])
    problems = [*broken_links(root), *unknown_tests(root)]
    print("\n".join(problems) or "every link and every test is there")
    sys.exit(1 if problems else 0)


main()
