# SPDX-License-Identifier: Apache-2.0
"""Adds the version and what protoc writes to the package; all else is in pyproject.toml.

A clone has both beside this folder. A source distribution has taken them along: what protoc writes
lies in src, and the version in PKG-INFO.
"""

import pathlib
import re
import sys

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import make_package  # noqa: E402

IS_SDIST = (HERE / "PKG-INFO").exists()
# In a clone as everything of this repository that is built; the source stays as it is.
BUILD = HERE / "build" if IS_SDIST else HERE.parents[1] / "build" / "python"
(BUILD / "egg_info").mkdir(parents=True, exist_ok=True)


class BuildWithProtos(build_py):
    def run(self) -> None:
        super().run()
        if not IS_SDIST:
            make_package.generate(pathlib.Path(self.build_lib))


class SdistWithProtos(sdist):
    def make_release_tree(self, base_dir: str, files: "list[str]") -> None:
        super().make_release_tree(base_dir, files)
        make_package.generate(pathlib.Path(base_dir) / "src")


def version() -> str:
    """The version of the whole project: it is written in CMakeLists.txt alone."""
    source, pattern = ((HERE / "PKG-INFO", r"^Version: ([0-9.]+)$") if IS_SDIST else
                       (HERE.parents[1] / "CMakeLists.txt", r"project\(muster VERSION ([0-9.]+)"))
    found = re.search(pattern, source.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        sys.exit(f"{source} has no version")
    return found.group(1)


# What protoc writes is found in a source distribution alone.
setup(version=version(),
      packages=["muster", "muster.v1", "muster.rpc_details"] if IS_SDIST else ["muster"],
      cmdclass={"build_py": BuildWithProtos, "sdist": SdistWithProtos},
      options={"build": {"build_base": str(BUILD / "base")},
               "egg_info": {"egg_base": str(BUILD / "egg_info")}})
