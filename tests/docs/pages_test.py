#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs what pages tell their readers to save and to run, in the pages' own words.

    pages_test.py PAGE.md…

A page says by comments, which no reader sees, what its code blocks are. Each page is followed from top
to bottom in an empty folder of its own:

    <!-- file NAME -->      the block is saved as NAME
    <!-- run -->            bash runs the block, which must succeed
    <!-- run: exit N -->    bash runs the block, which must end with N
    <!-- start: TEXT -->    bash runs the block beside what follows, and has printed TEXT before that
    <!-- prints -->         what the last run printed to stdout
    <!-- complains -->      what the last run printed to stderr
    <!-- source PATH -->    the block is the repository's PATH

In what is printed, a line of … alone stands for any lines, and … within a line for any text. A server of
a page listens on localhost:78NN; here it gets a port that is free, and so do those who call it.

Ends with 1 if a page is wrong.
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIRECTIVES = "file|run|start|prints|complains|source"
BLOCK = re.compile(rf"^<!-- ({DIRECTIVES})(?:[: ]+([^\n]*?))? -->\n+```\w*\n(.*?)^```$",
                   re.MULTILINE | re.DOTALL)
COMMENT = re.compile(rf"^<!-- (?:{DIRECTIVES})\b.*-->$", re.MULTILINE)
PORT = re.compile(r"\blocalhost:(78\d\d)\b")
SECONDS = 120


class WrongPage(Exception):
    """What a page says and what is do not agree."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def matches(expected, printed):
    pattern = ""
    for line in expected.splitlines():
        pattern += "(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + " *\n"
    return re.fullmatch(pattern, printed) is not None


class Follower:
    """Does what one page says."""

    def __init__(self, page, folder):
        self.page = page
        self.folder = folder
        self.done = None
        self.started = []
        self.ports = {}
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("MUSTER")}
        programs = pathlib.Path(os.environ["MUSTER"]).parent
        # Debian's Python has the packages that the pages' programs need.
        self.environment["PATH"] = f"{programs}:/usr/bin:{self.environment['PATH']}"
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def follow(self):
        text = self.page.read_text(encoding="utf-8")
        blocks = list(BLOCK.finditer(text))
        if not blocks or len(blocks) != len(COMMENT.findall(text)):
            raise WrongPage(f"{len(COMMENT.findall(text))} comments, {len(blocks)} blocks after one")
        for block in blocks:
            line = text.count("\n", 0, block.start()) + 1
            kind, argument, content = block.groups()
            try:
                getattr(self, kind)(argument, PORT.sub(self.own_port, content))
            except WrongPage as wrong:
                raise WrongPage(f"line {line}: {wrong}") from None
        return len(blocks)

    def own_port(self, found):
        return f"localhost:{self.ports.setdefault(found[1], free_port())}"

    def file(self, name, content):
        (self.folder / name).write_text(content, encoding="utf-8")

    def run(self, wanted, content):
        code = int(wanted.removeprefix("exit ")) if wanted else 0
        self.done = subprocess.run(["bash", "-euo", "pipefail", "-c", content], cwd=self.folder, text=True,
                                   env=self.environment, capture_output=True, timeout=SECONDS)
        if self.done.returncode != code:
            raise WrongPage(f"ended with {self.done.returncode}:\n{self.done.stdout}{self.done.stderr}")

    def start(self, ready, content):
        # A session of its own, so that the end reaches what the shell has started, too.
        process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", content], cwd=self.folder, text=True,
                                   env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        self.started.append(process)
        hangs = threading.Timer(SECONDS, self.end)
        hangs.start()
        said = ""
        for line in process.stdout:
            said += line
            if ready in line:
                break
        hangs.cancel()
        if ready not in said:
            raise WrongPage(f"did not say {ready!r}:\n{said}")

    def prints(self, _, content):
        self.compare(content, self.done.stdout)

    def complains(self, _, content):
        self.compare(content, self.done.stderr)

    def compare(self, expected, printed):
        if not matches(expected, printed):
            raise WrongPage(f"printed:\n{printed}")

    def source(self, path, content):
        # Here and in the repository ports are those of the page.
        ours = PORT.sub(self.own_port, (ROOT / path).read_text(encoding="utf-8"))
        if content != ours:
            raise WrongPage(f"is not {path}")

    def end(self):
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def main():
    wrong = False
    for page in map(pathlib.Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory(prefix="muster-page-") as folder:
            follower = Follower(page, pathlib.Path(folder))
            try:
                print(f"{page.name}: {follower.follow()} blocks hold")
            except WrongPage as reason:
                print(f"{page.name}: {reason}")
                wrong = True
            finally:
                follower.end()
    sys.exit(wrong)


main()
