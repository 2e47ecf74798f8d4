#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manifests of the chart against the schemas of Kubernetes 1.31 to 1.36, strictly, by kubeconform.

scripts/test makes both. Custom resources have schemas, too: those of cert-manager, the
Prometheus operator and KEDA.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import chart
import schemas
from chart import ChartTest
from matrix import MATRIX

PROGRAMS = pathlib.Path(subprocess.run([chart.ROOT / "tests/kubernetes/cluster", "programs"], check=True,
                                       capture_output=True, text=True).stdout.strip())
KUBECONFORM, DOCUMENTS = PROGRAMS / "kubeconform", PROGRAMS / "documents"
RELEASES = ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
# What both the first and the last release take, those between them take.
if os.environ.get("MUSTER_TEST_SMALL_COUNTS"):
    RELEASES = (RELEASES[0], RELEASES[-1])


@unittest.skipUnless(KUBECONFORM.exists() and DOCUMENTS.is_dir(),
                     "kubeconform or its documents are not there: scripts/test makes them")
class SchemasTest(ChartTest):
    def text_for(self, release, *values, files=()):
        done = chart.helm("template", "muster", chart.CHART, "--namespace", chart.NAMESPACE,
                          "--kube-version", f"{release}.0", *chart.options_of(values, files))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check(self, release, text):
        """What kubeconform has against manifests. Empty: nothing."""
        with tempfile.TemporaryDirectory() as folder:
            schemas.write(pathlib.Path(folder), DOCUMENTS, release, chart.Manifests(text).all)
            done = subprocess.run(
                [KUBECONFORM, "-strict", "-summary", "-kubernetes-version", f"{release}.0",
                 "-schema-location", f"{folder}/{schemas.LOCATION}"],
                input=text, capture_output=True, text=True, timeout=chart.TIMEOUT_SECONDS)
        [valid, invalid, errors, skipped] = map(int, re.search(
            r"Valid: (\d+), Invalid: (\d+), Errors: (\d+), Skipped: (\d+)", done.stdout).groups())
        self.assertEqual(skipped, 0, done.stdout)
        self.assertEqual(valid + invalid + errors, len(chart.Manifests(text).all), done.stdout)
        self.assertEqual(done.returncode == 0, invalid + errors == 0, done.stdout)
        return "" if done.returncode == 0 else done.stdout + done.stderr

    def test_every_release_takes_every_manifest(self):
        for release in RELEASES:
            # The schema of one object has nothing to do with those beside it.
            for name, given in MATRIX.items():
                with self.subTest(f"{name} on {release}"):
                    text = self.text_for(release, *given.get("values", ()), files=given.get("files", ()))
                    self.assertEqual(self.check(release, text), "")

    def broken(self, *values, **changed):
        """What is said of the manifests, with one text in place of another."""
        text = self.text_for("1.36", *values)
        for old, new in changed.values():
            self.assertIn(old, text)
            text = text.replace(old, new, 1)
        return self.check("1.36", text)

    def test_a_manifest_that_is_broken_is_refused(self):
        pool = ("pools.default.jobs={retail}",)
        deployment = "kind: Deployment\nmetadata:"
        for said, values, old, new in (
                ("additional properties 'replica' not allowed", (), "  replicas: ", "  replica: "),
                ("additional properties 'envs' not allowed", (), "        env:\n", "        envs:\n"),
                ("got string, want integer", (), "  replicas: 1\n", "  replicas: one\n"),
                ("missing property 'selector'", (), "  selector:\n    matchLabels:", "  strategy:\n    matchLabels:"),
                ("already set in map", (), "  replicas: 1\n", "  replicas: 1\n  replicas: 1\n"),
                ("could not find schema for Deployment", (), f"apiVersion: apps/v1\n{deployment}",
                 f"apiVersion: apps/v1beta2\n{deployment}"),
                ("additional properties 'maxReplica' not allowed", (*pool, "scaler.mode=keda"), "  maxReplicaCount:", "  maxReplica:"),
                ("maxReplicas", (*pool, "scaler.mode=hpa", "scaler.hpa.targetCPUUtilization=70"), "  maxReplicas:", "  most:"),
                ("additional properties 'dnsName' not allowed",
                 ("tls.enabled=true", "tls.certManager.enabled=true", "tls.certManager.issuerRef.name=ca"), "  dnsNames:", "  dnsName:"),
                ("additional properties 'endpoint' not allowed",
                 ("metrics.enabled=true", "metrics.serviceMonitor.enabled=true"), "  endpoints:", "  endpoint:"),
        ):
            with self.subTest(said):
                self.assertIn(said, self.broken(*values, change=(old, new)))

    def test_a_release_that_lacks_a_kind_refuses_it(self):
        text = ("apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\nspec: {}\n")
        self.assertIn("could not find schema for DeviceClass", self.check("1.31", text))
        self.assertEqual(self.check("1.36", text), "")


if __name__ == "__main__":
    chart.main()
