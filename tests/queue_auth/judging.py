# SPDX-License-Identifier: Apache-2.0
"""What the tests share: requests as queue_auth_judge reads them, and its verdicts."""

import json
import os
import subprocess
import urllib.parse

KEYS = [
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==",
    "gIGCg4SFhoeIiYqLjI2Oj5CRkpOUlZaXmJmam5ydnp+goaKjpKWmp6ipqqusra6vsLGys7S1tre4ubq7vL2+vw==",
]
ACCOUNT = "sally"


def request_of(method, url, headers, operation, policies=()):
    """The judge's view of a request for `url`, whose host or first segment names the account."""
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    segments = parts.path.split("/")[1:]
    named = host.split(".")[0] if host.endswith(".localhost") else segments.pop(0)
    secondary = named.endswith("-secondary")
    return {
        "method": method,
        "path": parts.path,
        "query": urllib.parse.parse_qsl(parts.query, keep_blank_values=True),
        "headers": [[name.lower(), value] for name, value in headers],
        "account": named.removesuffix("-secondary"),
        "secondary": secondary,
        "queue": urllib.parse.unquote(segments[0]) if segments else "",
        "ip": "127.0.0.1",
        "https": parts.scheme == "https",
        "operation": operation,
        "policies": [list(policy) for policy in policies],
    }


def judge(requests):
    """The verdict on each request: {"code": …, "detail": …}."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run(
        [os.environ["QUEUE_AUTH_JUDGE"], ":".join([ACCOUNT, *KEYS])],
        input=lines, capture_output=True, text=True, check=True)
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(verdicts) == len(requests), done.stderr
    return verdicts
