# SPDX-License-Identifier: Apache-2.0
"""The package as its README installs it: by pip, into an environment, from a clone."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PACKAGE = pathlib.Path(__file__).resolve().parents[1]
SECONDS = 240


class InstallTest(unittest.TestCase):
    def run_in(self, folder, *command):
        # Only what is installed counts.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(command, cwd=folder, env=environment, check=True, text=True,
                              stdout=subprocess.PIPE, timeout=SECONDS).stdout

    def test_pip_installs_it_with_its_generated_modules_and_its_types(self):
        with tempfile.TemporaryDirectory() as folder:
            self.run_in(folder, sys.executable, "-m", "venv", "--system-site-packages", "client")
            python = f"{folder}/client/bin/python3"
            self.run_in(folder, python, "-m", "pip", "install", "--quiet", "--no-index",
                        "--no-build-isolation", PACKAGE)
            said = self.run_in(folder, python, "-c", (
                "import muster, importlib.metadata, pathlib;"
                "print(pathlib.Path(muster.__file__).with_name('py.typed').exists());"
                "print(muster.Client('localhost:1'));"
                "print(importlib.metadata.version('muster'))"))
        typed, client, version = said.splitlines()
        self.assertEqual(typed, "True")
        self.assertIn("muster.client.Client", client)
        project = (PACKAGE.parents[1] / "CMakeLists.txt").read_text()
        self.assertEqual(version, re.search(r"project\(muster VERSION ([0-9.]+)", project).group(1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
