#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compose file is one by the schema of the Compose specification, as docker compose reads it.

compose_schema is built with Go for it, from compose_schema/main.go. Skipped where there is no Go, or its modules
cannot be fetched.
"""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

import monitoring
from monitoring import COMPOSE, ROOT

SOURCE = ROOT / "tests/monitoring/compose_schema"
FILE = COMPOSE / "compose.yaml"
# What is changed in the file, and what the refusal names.
MISTAKES = {
    "a key that there is not": ("    healthcheck:\n", "    heathcheck:\n", "heathcheck"),
    "a text in a list's place": ('ports: ["127.0.0.1:9090:9090"]', "ports: 9090", "services.prometheus.ports"),
    "a time without a unit": ("stop_grace_period: 45s", "stop_grace_period: 45 seconds", "stop_grace_period"),
    "a service that there is not": ("nats: {condition: service_healthy}", "nat: {condition: service_healthy}",
                                    'undefined service "nat"'),
    "a volume that is not declared": ("  controller: {}\n", "", "undefined volume controller"),
}


class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if shutil.which("go") is None:
            raise unittest.SkipTest("there is no Go")
        if subprocess.run(["go", "mod", "download"], cwd=SOURCE, stdin=subprocess.DEVNULL).returncode != 0:
            raise unittest.SkipTest("Go cannot fetch the modules")
        folder = tempfile.TemporaryDirectory(prefix="muster-compose-schema-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.program = cls.folder / "compose_schema"
        subprocess.run(["go", "vet", "."], cwd=SOURCE, check=True)
        subprocess.run(["go", "build", "-buildvcs=false", "-o", cls.program, "."], cwd=SOURCE, check=True)

    def load(self, file):
        return subprocess.run([self.program, file], capture_output=True, text=True)

    def test_the_file_is_one_with_all_its_services_and_volumes(self):
        done = self.load(FILE)
        self.assertEqual(done.returncode, 0, done.stderr)
        about = monitoring.read_yaml(FILE)
        self.assertEqual(done.stdout, f"{len(about['services'])} services, {len(about['volumes'])} volumes\n")

    def test_a_mistake_is_named(self):
        text = FILE.read_text(encoding="utf-8")
        for what, (right, wrong, named) in MISTAKES.items():
            with self.subTest(what):
                self.assertIn(right, text)
                file = self.folder / "compose.yaml"
                file.write_text(text.replace(right, wrong, 1), encoding="utf-8")
                done = self.load(file)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(named, done.stderr)


if __name__ == "__main__":
    monitoring.main()
