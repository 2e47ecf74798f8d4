#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs event_bench on a few events: event_bench_test.py EVENT_BENCH SOURCE_DIR

It checks the order of what it reads itself, and fails when that is wrong.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

bench, source = sys.argv[1:]
sys.path.insert(0, f"{source}/bench/mesh")
from programs import Server  # noqa: E402

for batch in ("1", "50"):
    with (tempfile.TemporaryDirectory() as folder,
          Server("nats-server", pathlib.Path(folder)) as server):
        output = subprocess.run([bench, server.url, "--events", "200", "--batch", batch,
                                 "--rounds", "1"], check=True, stdout=subprocess.PIPE).stdout
        figures = json.loads(output)
        assert figures["events"] == 800, figures
        assert figures["read_per_second"]["ratio"] > 0, figures
