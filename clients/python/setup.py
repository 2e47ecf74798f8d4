"""Adds the version and what protoc writes to the package; all else is in pyproject.toml."""

import pathlib
import re
import sys

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import make_package  # noqa: E402

# As everything of this repository that is built; the source stays as it is.
BUILD = HERE.parents[1] / "build" / "python"
(BUILD / "egg_info").mkdir(parents=True, exist_ok=True)


class BuildWithProtos(build_py):
    def run(self) -> None:
        super().run()
        make_package.generate(pathlib.Path(self.build_lib))


def version() -> str:
    """The version of the whole project: it is written in CMakeLists.txt alone."""
    project = (HERE.parents[1] / "CMakeLists.txt").read_text(encoding="utf-8")
    found = re.search(r"project\(muster VERSION ([0-9.]+)", project)
    if found is None:
        sys.exit("CMakeLists.txt has no project(muster VERSION …)")
    return found.group(1)


setup(version=version(),
      cmdclass={"build_py": BuildWithProtos},
      options={"build": {"build_base": str(BUILD / "base")},
               "egg_info": {"egg_base": str(BUILD / "egg_info")}})
