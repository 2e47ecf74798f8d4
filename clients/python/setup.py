"""Adds what protoc writes to the package; all else is in pyproject.toml."""

import pathlib
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


setup(cmdclass={"build_py": BuildWithProtos},
      options={"build": {"build_base": str(BUILD / "base")},
               "egg_info": {"egg_base": str(BUILD / "egg_info")}})
