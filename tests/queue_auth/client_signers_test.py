# SPDX-License-Identifier: Apache-2.0
"""What the storage service's own clients sign is accepted: each operation, by shared key and by SAS.
Their packages are found by scripts/test; without them the tests are skipped."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import judging

HERE = pathlib.Path(__file__).parent


class ClientSignersTest(unittest.TestCase):
    def expect_accepted(self, requests):
        self.assertGreater(len(requests), 50)
        for request, verdict in zip(requests, judging.judge(requests)):
            self.assertEqual(verdict["code"], "", f"{request} {verdict}")

    def test_accepts_every_request_of_the_python_client(self):
        python = os.environ.get("MUSTER_AZURE_PYTHON")
        if not python:
            self.skipTest("azure-storage-queue is not here")
        done = subprocess.run([python, "-B", HERE / "python_client.py"], stdout=subprocess.PIPE, check=True)
        self.expect_accepted([json.loads(line) for line in done.stdout.splitlines()])

    def test_accepts_every_request_of_the_javascript_client(self):
        modules = os.environ.get("MUSTER_AZURE_NODE_MODULES")
        if not modules:
            self.skipTest("@azure/storage-queue is not here")
        done = subprocess.run(["node", HERE / "js_client.js", *judging.KEYS], stdout=subprocess.PIPE,
                              check=True, env={**os.environ, "NODE_PATH": modules})
        sent = [json.loads(line) for line in done.stdout.splitlines()]
        self.expect_accepted([
            judging.request_of(one["method"], one["url"], one["headers"], one["operation"])
            for one in sent])


if __name__ == "__main__":
    program = unittest.main(exit=False)
    ran = program.result.testsRun - len(program.result.skipped)
    for _, why in program.result.skipped:
        print(f"skipped: {why}")
    sys.exit(77 if program.result.wasSuccessful() and ran == 0 else not program.result.wasSuccessful())
