#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that what the pages point at is there.

    docs_test.py REPOSITORY

Relative links in Markdown files lead to files, and those with a #fragment to a heading; each
`Suite.Test` that docs/requirements.md names is a test in the source; each method that docs/policy.md
names is one of the protos; each message that heads a part of docs/faq.md is in the code; and the layers
of docs/walk.md are those that the build holds.
"""

import fnmatch
import functools
import pathlib
import re
import sys

LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)]*))?\)")
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
CITED_TEST = re.compile(r"`(\w+)\.([A-Z]\w+)`")
LIBRARY = re.compile(r"^muster_library\(([\w-]+) LAYER (\d+)", re.MULTILINE)
DEFINED_TEST = re.compile(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", re.MULTILINE)


def pages(root):
    yield from (page for page in root.glob("*.md"))
    for folder in ("docs", "bench", "clients", "examples", "muster", "services", "cli", "tests", "helm"):
        yield from (root / folder).rglob("*.md")


def prose(page):
    return CODE.sub("", page.read_text(encoding="utf-8"))


@functools.lru_cache(maxsize=None)
def anchors(page):
    """The names of a page's headings in links, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            for heading in HEADING.findall(prose(page))}


def broken_links(root):
    for page in pages(root):
        for path, anchor in LINK.findall(prose(page)):
            target = page.parent / path if path else page
            if not target.exists():
                yield f"{page.relative_to(root)}: no such file: {path}"
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                yield f"{page.relative_to(root)}: no such heading: {path}#{anchor}"


def unknown_tests(root):
    defined = set()
    for folder in ("muster", "services", "cli", "examples", "tests", "bench"):
        for source in (root / folder).rglob("*.cc"):
            defined.update(DEFINED_TEST.findall(source.read_text(encoding="utf-8")))
    page = root / "docs" / "requirements.md"
    for suite, test in CITED_TEST.findall(page.read_text(encoding="utf-8")):
        if (suite, test) not in defined:
            yield f"docs/requirements.md: no such test: {suite}.{test}"


def unknown_methods(root):
    defined = set()
    for proto in (root / "proto/muster/v1").glob("*_service.proto"):
        text = proto.read_text(encoding="utf-8")
        [service] = re.findall(r"^service (\w+)", text, re.MULTILINE)
        defined.update(f"{service}/{method}" for method in re.findall(r"^  rpc (\w+)", text, re.MULTILINE))
    page = (root / "docs" / "policy.md").read_text(encoding="utf-8")
    for pattern in re.findall(r"\bmuster\.v1\.([\w.]+/[\w*]+)", page):
        if not fnmatch.filter(defined, pattern):
            yield f"docs/policy.md: no such method: muster.v1.{pattern}"


def unknown_messages(root):
    texts = []
    for folder in ("muster", "services", "cli"):
        for source in (root / folder).rglob("*.cc"):
            if not source.name.endswith("_test.cc"):
                # A message that is broken over lines is one.
                texts.append(re.sub(r'"\s*\n\s*"', "", source.read_text(encoding="utf-8")))
    code = "\n".join(texts).replace('\\"', '"')
    headings = re.findall(r"^### (.*)$", (root / "docs" / "faq.md").read_text(encoding="utf-8"), re.MULTILINE)
    for heading in headings:
        for fragment in filter(None, map(str.strip, heading.strip("` ").split("…"))):
            if fragment not in code:
                yield f"docs/faq.md: no such message in the code: {fragment}"


def misplaced_libraries(root):
    said = {}
    for row in re.findall(r"^\| (\d[\d, –]*) \| (.*) \|$", (root / "docs" / "walk.md").read_text(encoding="utf-8"),
                          re.MULTILINE):
        ends = [int(number) for number in re.findall(r"\d+", row[0])]
        said.update(dict.fromkeys(re.findall(r"`([\w-]+)`", row[1]), range(ends[0], ends[-1] + 1)))
    for folder in ("muster", "services", "cli"):
        for file in (root / folder).rglob("CMakeLists.txt"):
            for library, layer in LIBRARY.findall(file.read_text(encoding="utf-8")):
                if library.endswith("_conformance"):
                    continue  # the walk says it of all of them
                if int(layer) not in said.get(library, ()):
                    yield f"docs/walk.md: the layer of {library} is {layer}"


def main():
    root = pathlib.Path(sys.argv[1])
    problems = [*broken_links(root), *unknown_tests(root), *unknown_methods(root),
                *unknown_messages(root), *misplaced_libraries(root)]
    print("\n".join(problems) or "every link, test, method, message and library is there")
    sys.exit(1 if problems else 0)


main()
