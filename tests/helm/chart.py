# SPDX-License-Identifier: Apache-2.0
"""What the tests of the chart share: helm, and the manifests that it renders.

They run with Helm 3, and with MUSTER_TEST_HELM=4 with Helm 4.
"""

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
GRACE_SLACK_SECONDS = 15
OF_OPERATORS = ("cert-manager.io/v1", "monitoring.coreos.com/v1", "keda.sh/v1alpha1")
SKIPPED = 77  # the exit code of a test program that could not run, as its ctest knows


def find_helm(name, variable):
    built = ROOT / "build/tools" / name
    return os.environ.get(variable) or (str(built) if built.exists() else None) or shutil.which(name)


HELM3, HELM4 = find_helm("helm", "MUSTER_HELM"), find_helm("helm4", "MUSTER_HELM4")
IS_HELM4 = os.environ.get("MUSTER_TEST_HELM") == "4"
HELM = HELM4 if IS_HELM4 else HELM3


def helm(*arguments, program=None):
    # Go's collector would take a third of the time of a program that lives for a tenth of a second.
    return subprocess.run([program or HELM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=TIMEOUT_SECONDS, env={**os.environ, "GOGC": "off"})


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

    KINDS = {
        "v1": ("ConfigMap", "Pod", "Secret", "Service", "ServiceAccount"), "apps/v1": ("Deployment", "StatefulSet"),
        "autoscaling/v2": ("HorizontalPodAutoscaler",), "keda.sh/v1alpha1": ("ScaledObject",),
        "networking.k8s.io/v1": ("NetworkPolicy",), "policy/v1": ("PodDisruptionBudget",),
        "rbac.authorization.k8s.io/v1": ("Role", "RoleBinding"),
    }

    @staticmethod
    def of_itself():
        """What an API server tells of itself, by its paths. Helm 3 asks for the kinds only that a template looks up."""
        told = {"/version": {"major": "1", "minor": "36", "gitVersion": "v1.36.3"},
                "/api": {"kind": "APIVersions", "versions": ["v1"]},
                "/apis": {"kind": "APIGroupList", "groups": []}}
        for version, kinds in ApiServer.KINDS.items():
            group, _, short = version.rpartition("/")
            told[f"/apis/{version}" if group else "/api/v1"] = {
                "kind": "APIResourceList", "groupVersion": version, "resources": [
                    {"name": f"{kind.lower()}s", "kind": kind, "namespaced": True, "verbs": ["get"]} for kind in kinds]}
            if group:
                this = {"groupVersion": version, "version": short}
                told["/apis"]["groups"].append({"name": group, "versions": [this], "preferredVersion": this})
        return told

    def __init__(self, objects):
        told = {**self.of_itself(), **objects}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0]
                found = told.get(path)
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
        # It looks for its end this often.
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def template_on(objects, *values):
    """As an API server with these objects, by their paths, has it."""
    with ApiServer(objects) as server:
        return template(*values, more=(
            "--dry-run=server", "--disable-openapi-validation", "--kube-apiserver", server.url, "--kubeconfig",
            os.devnull))


class Manifests:
    """What a chart renders to, by kind and name."""

    def __init__(self, text):
        # The loader in C is eight times as fast, and has the same rules.
        self.all = [document for document in yaml.load_all(text, yaml.CSafeLoader) if document]

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
        print("skipped: there is no Helm 4. Where Go is installed, scripts/test --all builds one; "
              "MUSTER_HELM4 names another" if IS_HELM4 else
              "skipped: there is no helm. Where Go is installed, scripts/test builds one; "
              "MUSTER_HELM names another")
        sys.exit(SKIPPED)
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    # A class that is skipped as a whole has no test that was run, and is in the list, too.
    skipped = [test for test, _ in result.skipped if isinstance(test, unittest.TestCase)]
    sys.exit(SKIPPED if result.skipped and result.testsRun == len(skipped) else 0)
