# SPDX-License-Identifier: Apache-2.0
"""Runs the load of gateway_bench on a few messages: gateway_bench_test.py GATEWAY_LOAD GATEWAY ENGINE_LOAD

The load fails itself where a reply is not the one that it should be.
"""

import json
import re
import subprocess
import sys
import tempfile

load, gateway, engine_load = sys.argv[1:]
with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
    server = subprocess.Popen([gateway, "--listen", "127.0.0.1:0", "--data-dir", folder],
                              stderr=subprocess.PIPE, text=True)
    try:
        port = re.search(r"address=http://127.0.0.1:(\d+)", server.stderr.readline())[1]

        def run(*arguments):
            done = subprocess.run([load, port, *arguments, "--queues", "3", "--connections", "4"],
                                  stdout=subprocess.PIPE, text=True)
            return done.returncode, json.loads(done.stdout) if done.stdout else {}

        assert run("create")[1]["messages"] == 3
        assert run("put", "--messages", "300")[1]["messages"] == 300
        assert run("put", "--messages", "300", "--rate", "3000")[1]["messages"] == 300
        assert run("take", "--messages", "200", "--get", "10")[1]["messages"] == 200
        # What was put is gone in the end, and a get that finds none ends the load.
        assert run("take", "--messages", "1000", "--get", "10")[0] == 1
    finally:
        server.kill()
        server.stderr.close()
        server.wait()

with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
    done = subprocess.run([engine_load, folder, "--messages", "330", "--threads", "4"], check=True,
                          stdout=subprocess.PIPE, text=True)
    assert [json.loads(line)["messages"] for line in done.stdout.splitlines()] == [320, 320], done.stdout
