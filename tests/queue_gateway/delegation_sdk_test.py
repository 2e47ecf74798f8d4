"""Starts a gateway with HTTPS and tokens for delegation_sdk_test.mjs. MUSTER_AZURE_NODE_MODULES is a folder that
has the SDK by the name in the argument."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import gateway


def token():
    """Without a key set, a gateway on loopback checks no signature."""
    claims = {"iss": "https://sts.windows.net/tenant/", "aud": "https://storage.azure.com",
              "exp": int(time.time()) + 3600, "oid": "11111111-1111-1111-1111-111111111111",
              "tid": "22222222-2222-2222-2222-222222222222"}
    parts = [json.dumps({"alg": "RS256"}), json.dumps(claims), "signature"]
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


def main():
    if not os.environ.get("MUSTER_AZURE_NODE_MODULES") or not shutil.which("node") or \
            not shutil.which("openssl"):
        print("skipped: there is no SDK, no node, or no openssl", file=sys.stderr)
        return gateway.SKIPPED
    script = pathlib.Path(__file__).with_suffix(".mjs")
    with tempfile.TemporaryDirectory(prefix="muster-gateway-") as folder:
        certificate, key = (pathlib.Path(folder) / name for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-out", certificate, "-keyout", key], check=True, capture_output=True)
        service = gateway.Service(folder)
        try:
            running = service.start_gateway("--cert", certificate, "--key", key, "--oauth", "basic")
            return subprocess.run(
                ["node", str(script)], timeout=gateway.TIMEOUT_SECONDS,
                env={**os.environ, "NODE_EXTRA_CA_CERTS": str(certificate), "TOKEN": token(),
                     "STORAGE_QUEUE": sys.argv[1],
                     "SERVICE": f"https://{running.address}/{gateway.ACCOUNT}"}).returncode
        finally:
            service.kill()


if __name__ == "__main__":
    sys.exit(main())
