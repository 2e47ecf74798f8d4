#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts a row into the table of a proof page, in the place of the row of the same step.

  proof_page.py PAGE STEP COMMIT DATE COUNTED RESULT
"""
import os
import sys
import tempfile


def with_row(page, step, row):
    """`page` with `row` in its last table: in the place of the row whose first cell is `step`, or at the end."""
    lines = page.rstrip("\n").split("\n")
    rows = [index for index, line in enumerate(lines) if line.startswith("|")]
    if not rows:
        raise ValueError("the page has no table")
    for index in rows:
        if lines[index].split("|")[1].strip() == step:
            lines[index] = row
            break
    else:
        lines.insert(rows[-1] + 1, row)
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 7:
        sys.exit(__doc__)
    path, cells = sys.argv[1], [cell.replace("|", "/") for cell in sys.argv[2:]]
    with open(path, encoding="utf-8") as file:
        page = with_row(file.read(), cells[0], f"| {' | '.join(cells)} |")
    # Two steps may end at the same moment: each reader sees a whole page.
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=os.path.dirname(path) or ".", delete=False) as file:
        file.write(page)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


if __name__ == "__main__":
    main()
