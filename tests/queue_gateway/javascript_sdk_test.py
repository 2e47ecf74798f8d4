# SPDX-License-Identifier: Apache-2.0
"""Starts a gateway for javascript_sdk_test.mjs. MUSTER_AZURE_NODE_MODULES is a folder that has the SDK by the
name in the argument; without one, its own."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import gateway


def main():
    if not os.environ.get("MUSTER_AZURE_NODE_MODULES") or not shutil.which("node"):
        print("skipped: there is no SDK, or no node", file=sys.stderr)
        return gateway.SKIPPED
    package = sys.argv[1] if len(sys.argv) > 1 else "@azure/storage-queue"
    script = pathlib.Path(__file__).with_suffix(".mjs")
    with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
        service = gateway.Service(folder)
        try:
            running = service.start_gateway()
            return subprocess.run(
                ["node", str(script)], timeout=gateway.TIMEOUT_SECONDS,
                env={**os.environ, "CONNECTION": running.connection_string(), "STORAGE_QUEUE": package,
                     "UPDATES_TEXTS": "" if gateway.ON_NATS else "yes"}).returncode
        finally:
            service.kill()


if __name__ == "__main__":
    sys.exit(main())
