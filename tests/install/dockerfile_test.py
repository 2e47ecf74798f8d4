#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks into deploy/docker/Dockerfile: what it copies is there and not ignored, the image is not root's,
no base is a moving `latest`, and it is the same image as that of scripts/image. What it builds is shown
by tests/fresh_machine/dockerfile.

    dockerfile_test.py REPOSITORY
"""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
MADE = "build/packages/"  # scripts/package makes it


def instructions(text):
    """(name, arguments) of each instruction; a line that ends with a backslash goes on in the next."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, arguments = line.strip().partition(" ")
            yield name.upper(), arguments.split()


def ignored(path, patterns):
    """As Docker reads .dockerignore: the last pattern that matches the path, or a folder above, decides."""
    result = False
    for pattern in patterns:
        keeps = pattern.startswith("!")
        wanted = pattern.lstrip("!").removeprefix("**/").rstrip("/")
        above = ["/".join(path.split("/")[:end]) for end in range(1, path.count("/") + 2)]
        if any(fnmatch.fnmatch(each, wanted) for each in above):
            result = not keeps
    return result


def main():
    problems = []
    steps = list(instructions((ROOT / "deploy/docker/Dockerfile").read_text(encoding="utf-8")))
    patterns = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
                if line and not line.startswith("#")]
    stages, defaults, users, run = set(), {}, [], []
    for name, words in steps:
        if name == "ARG" and "=" in words[0]:
            key, value = words[0].split("=", 1)
            defaults.setdefault(key, value)
        elif name == "FROM":
            base = re.sub(r"\$\{(\w+)\}", lambda found: defaults[found.group(1)], words[0])
            if base not in stages | {"scratch"} and (":" not in base or base.endswith(":latest")):
                problems.append(f"FROM {base}: name a release")
            if len(words) == 3:
                stages.add(words[2])
            users = []  # each stage begins as root
        elif name in ("COPY", "ADD"):
            paths = [word for word in words if not word.startswith("--")]
            if any(word.startswith("--from=") for word in words):
                continue
            for path in paths[:-1]:
                if path != MADE and not (ROOT / path).exists():
                    problems.append(f"{name} {path}: no such file")
                if path != "." and ignored(path.rstrip("/"), patterns):
                    problems.append(f"{name} {path}: .dockerignore leaves it out")
        elif name == "USER":
            users.append(words[0])
        elif name == "RUN":
            for script in (word for word in words if word.startswith("scripts/")):
                if not (ROOT / script).exists() or ignored(script, patterns):
                    problems.append(f"RUN {script}: it is not in the context")
            for source in re.findall(r"type=bind,source=([\w/]+)", " ".join(words)):
                if not (ROOT / source).exists() or ignored(source, patterns):
                    problems.append(f"RUN --mount source={source}: it is not in the context")
            run += words
        for source in re.findall(r"from=(\w[\w-]*)", " ".join(words)):
            if source not in stages:
                problems.append(f"{name} from={source}: no such stage")
    for path in (".git", "build/dev", "build/release"):
        if not ignored(path, patterns):
            problems.append(f".dockerignore lets {path} into the context")

    image = (ROOT / "scripts/image").read_text(encoding="utf-8")
    number = re.search(r"^USER = (\d+)", image, re.MULTILINE).group(1)
    if users != [f"{number}:{number}"]:
        problems.append(f"USER {users}: scripts/image has {number}:{number}")
    for program in ("shrink", "bill_of_materials"):
        if f"deploy/docker/{program}" not in image or f"/docker/{program}" not in run:
            problems.append(f"deploy/docker/{program} is not called both by the Dockerfile and by scripts/image")
    text = " ".join(" ".join(words) for _, words in steps)
    for label in ("title", "version", "revision", "licenses"):
        if f"org.opencontainers.image.{label}=" not in text:
            problems.append(f"no label org.opencontainers.image.{label}")
    project = re.search(r"project\(muster VERSION ([0-9.]+)",
                        (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)
    if defaults.get("VERSION") != project:
        problems.append(f"ARG VERSION={defaults.get('VERSION')}: the project has {project}")
    print("\n".join(problems) or "the Dockerfile is sound")
    sys.exit(1 if problems else 0)


main()
