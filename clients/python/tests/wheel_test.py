# SPDX-License-Identifier: Apache-2.0
"""The package as it is published: a source distribution and a wheel, built without a network from a tree
that has the repository's files and no others."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parents[1]
NEEDED = ("CMakeLists.txt", "clients/python", "proto")
SECONDS = 240
BACKEND = "import sys, setuptools.build_meta as backend; print(getattr(backend, sys.argv[1])(sys.argv[2]))"
USE = """
import importlib.metadata, pathlib, muster, muster.v1.batch_service_pb2_grpc, muster.rpc_details.status_pb2
print(muster.Client("localhost:1"))
print(pathlib.Path(muster.__file__).with_name("py.typed").exists())
print(importlib.metadata.version("muster"))
print(muster.__file__)
"""


class WheelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.tree = self.folder / "tree"
        self.copy_tree()
        project = (ROOT / "CMakeLists.txt").read_text()
        self.version = re.search(r"project\(muster VERSION ([0-9.]+)", project).group(1)

    def copy_tree(self):
        """What a clone of the repository would have, with what is not committed yet."""
        if shutil.which("git") is None or not (ROOT / ".git").exists():
            self.skipTest("needs git, and a clone")
        listed = self.run_in(ROOT, "git", "-c", f"safe.directory={ROOT}", "ls-files", "-z",
                             "--cached", "--others", "--exclude-standard", *NEEDED)
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).exists():  # else it was removed
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.tree / name)

    def run_in(self, folder, *command):
        # Only what is installed counts.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(command, cwd=folder, env=environment, check=True, text=True,
                              stdout=subprocess.PIPE, timeout=SECONDS).stdout

    def build(self, source, kind):
        """Calls the build backend as pip and build do; returns the file that it made."""
        made = self.folder / f"{kind}-of-{source.name}"
        made.mkdir()
        said = self.run_in(source, sys.executable, "-c", BACKEND, f"build_{kind}", made)
        return made / said.splitlines()[-1]

    def assert_works_installed(self, wheel):
        environment = self.folder / f"venv-of-{wheel.parent.name}"
        self.run_in(self.folder, sys.executable, "-m", "venv", "--system-site-packages", environment)
        python = environment / "bin/python3"
        self.run_in(self.folder, python, "-m", "pip", "install", "--quiet", "--no-index", wheel)
        client, typed, version, place = self.run_in(self.folder, python, "-c", USE).splitlines()
        self.assertIn("muster.client.Client", client)
        self.assertEqual((typed, version), ("True", self.version))
        self.assertTrue(place.startswith(str(environment)), place)

    def test_a_wheel_of_a_clone_and_one_of_the_source_distribution_are_the_same_and_work(self):
        package = self.tree / "clients/python"
        wheel = self.build(package, "wheel")
        self.assertEqual(wheel.name, f"muster-{self.version}-py3-none-any.whl")
        self.assert_works_installed(wheel)

        source = self.build(package, "sdist")
        self.assertEqual(source.name, f"muster-{self.version}.tar.gz")
        with tarfile.open(source) as archive:
            archive.extractall(self.folder)
        again = self.build(self.folder / f"muster-{self.version}", "wheel")
        self.assert_works_installed(again)
        built, rebuilt = self.content_of(wheel), self.content_of(again)
        self.assertEqual(set(built), set(rebuilt))
        self.assertEqual([], [name for name in built if built[name] != rebuilt[name]])

        # Both builds have left the tree as it was, but for build/.
        left = {path.relative_to(self.tree).parts[0] for path in self.tree.rglob("*")}
        self.assertLessEqual(left, {"build", "CMakeLists.txt", "clients", "proto"})
        self.assertEqual([], [str(path) for path in (package / "src").rglob("*pb2*")])

    @staticmethod
    def content_of(wheel):
        with zipfile.ZipFile(wheel) as archive:
            return {name: archive.read(name) for name in archive.namelist()
                    if not name.endswith("/RECORD")}


if __name__ == "__main__":
    program = unittest.main(verbosity=2, exit=False)
    for _, why in program.result.skipped:
        print(f"skipped: {why}")
    sys.exit(77 if program.result.skipped else not program.result.wasSuccessful())
