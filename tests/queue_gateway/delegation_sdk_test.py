# SPDX-License-Identifier: Apache-2.0
"""Starts a gateway with HTTPS and tokens for delegation_sdk_test.mjs. MUSTER_AZURE_NODE_MODULES is a folder that
has the SDK by the name in the argument."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import gateway
import tls


def main():
    if not os.environ.get("MUSTER_AZURE_NODE_MODULES") or not shutil.which("node") or \
            not shutil.which("openssl"):
        print("skipped: there is no SDK, no node, or no openssl", file=sys.stderr)
        return gateway.SKIPPED
    script = pathlib.Path(__file__).with_suffix(".mjs")
    with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
        certificate, key = tls.certificate(folder)
        service = gateway.Service(folder)
        try:
            running = service.start_gateway("--cert", certificate, "--key", key, "--oauth", "basic")
            return subprocess.run(
                ["node", str(script)], timeout=gateway.TIMEOUT_SECONDS,
                env={**os.environ, "NODE_EXTRA_CA_CERTS": str(certificate), "TOKEN": tls.token(),
                     "STORAGE_QUEUE": sys.argv[1],
                     "SERVICE": f"https://{running.address}/{gateway.ACCOUNT}"}).returncode
        finally:
            service.kill()


if __name__ == "__main__":
    sys.exit(main())
