"""What the tests of the chart share: helm, and the manifests that it renders."""

import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "helm/muster"
PRODUCTION = CHART / "values-production.yaml"
DEVELOPMENT = CHART / "values-dev.yaml"
RELEASE, NAMESPACE = "muster", "mesh"
TIMEOUT_SECONDS = 120
SKIPPED = 77  # the exit code of a test program that could not run, as its ctest knows


def find_helm():
    built = ROOT / "build/tools/helm"
    return (os.environ.get("MUSTER_HELM") or (str(built) if built.exists() else None) or
            shutil.which("helm"))


HELM = find_helm()


def helm(*arguments):
    return subprocess.run([HELM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=TIMEOUT_SECONDS)


def options_of(values=(), files=()):
    """helm's options for values such as "nats.replicas=3", and for files of values."""
    options = []
    for file in files:
        options += ["--values", file]
    for value in values:
        options += ["--set", value]
    return options


# What helm made of values alone, by its options: half a second of a core each.
rendered = {}


def template(*values, files=(), release=RELEASE, more=()):
    options = (values, release, tuple(more))
    if files or "--dry-run=server" in more:  # which may change
        return render_anew(*values, files=files, release=release, more=more)
    if options not in rendered:
        rendered[options] = render_anew(*values, release=release, more=more)
    return rendered[options]


def render_anew(*values, files=(), release=RELEASE, more=()):
    return helm("template", release, CHART, "--namespace", NAMESPACE, "--kube-version", "1.36",
                *options_of(values, files), *more)


class ApiServer:
    """Shows the live objects that a template looks up, by their paths, and has no others. For `with`."""

    KINDS = {"/apis/apps/v1": {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["get"]}}

    def __init__(self, objects):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                found = objects.get(path)
                if path in ApiServer.KINDS:
                    found = {"kind": "APIResourceList", "groupVersion": path.removeprefix("/apis/"),
                             "resources": [ApiServer.KINDS[path]]}
                missing = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
                body = json.dumps(found or missing).encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Manifests:
    """What a chart renders to, by kind and name."""

    def __init__(self, text):
        self.all = [document for document in yaml.safe_load_all(text) if document]

    def of(self, kind):
        return {one["metadata"]["name"]: one for one in self.all if one["kind"] == kind}

    def get(self, kind, name):
        return self.of(kind)[name]

    def workloads(self):
        return [*self.of("Deployment").values(), *self.of("StatefulSet").values()]

    def pods(self):
        """The name and the spec of each pod, that of `helm test` included."""
        yield from ((one["metadata"]["name"], one["spec"]["template"]["spec"])
                    for one in self.workloads())
        yield from ((name, one["spec"]) for name, one in self.of("Pod").items())

    def container(self, kind, name):
        return self.get(kind, name)["spec"]["template"]["spec"]["containers"][0]


class ChartTest(unittest.TestCase):
    maxDiff = None

    def render(self, *values, files=(), release=RELEASE):
        done = template(*values, files=files, release=release)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Manifests(done.stdout)

    def refusal(self, *values, files=()):
        """What helm says when it refuses these values."""
        done = template(*values, files=files)
        self.assertNotEqual(done.returncode, 0, f"{values} were taken")
        return done.stderr


def main():
    """Ends with SKIPPED where there is no helm, or when every test was skipped."""
    if HELM is None:
        print("skipped: there is no helm. Where Go is installed, scripts/test builds one; "
              "MUSTER_HELM names another")
        sys.exit(SKIPPED)
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    # A class that is skipped as a whole has no test that was run, and is in the list, too.
    skipped = [test for test, _ in result.skipped if isinstance(test, unittest.TestCase)]
    sys.exit(SKIPPED if result.skipped and result.testsRun == len(skipped) else 0)
