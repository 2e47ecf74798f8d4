# SPDX-License-Identifier: Apache-2.0
"""A certificate and a bearer token for gateways that ask for them."""

import base64
import json
import pathlib
import subprocess
import time


def certificate(folder):
    """Two files in `folder`: a certificate of 127.0.0.1, which vouches for itself, and its key."""
    made, key = (pathlib.Path(folder) / name for name in ("cert.pem", "key.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
                    "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                    # A client in Rust takes no certificate of an authority for that of a server.
                    "-addext", "basicConstraints=critical,CA:FALSE",
                    "-out", made, "-keyout", key], check=True, capture_output=True)
    return made, key


def token():
    """Without a key set, a gateway on loopback checks no signature."""
    claims = {"iss": "https://sts.windows.net/tenant/", "aud": "https://storage.azure.com",
              "exp": int(time.time()) + 3600, "oid": "11111111-1111-1111-1111-111111111111",
              "tid": "22222222-2222-2222-2222-222222222222"}
    parts = [json.dumps({"alg": "RS256"}), json.dumps(claims), "signature"]
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
