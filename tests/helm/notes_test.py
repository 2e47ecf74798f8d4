#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the chart tells its user: the notes, the reference of its values, and the script of `helm test`."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

import yaml

import chart
from chart import CHART, NAMESPACE, ChartTest
from matrix import EXISTING_TLS, GATEWAY


class NotesTest(ChartTest):
    """What is printed after an install; without a cluster, in a manifest of a copy of the chart."""

    def notes(self, *values):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "muster"
            shutil.copytree(CHART, copy)
            text = (copy / "templates/NOTES.txt").read_text(encoding="utf-8")
            (copy / "templates/notes.yaml").write_text(
                '{{- define "notes" -}}' + text + '{{- end }}'
                '{kind: Notes, metadata: {name: notes}, text: {{ include "notes" . | toJson }}}')
            done = chart.helm("template", "muster", copy, "--namespace", NAMESPACE, *chart.options_of(values))
        self.assertEqual(done.returncode, 0, done.stderr)
        return chart.Manifests(done.stdout).get("Notes", "notes")["text"]

    def test_a_batch_is_printed_for_a_job_that_a_pool_works_for(self):
        self.assertIn("name: helm-test\n", self.notes())
        said = self.notes("pools.default.jobs={retail,urgent=4}")
        self.assertIn("muster batch submit retail ", said)
        # An example in the name of a job of the user's would replace it.
        self.assertNotIn("name: ", said)
        self.assertIn("no pool works for its job, helm-test (pools.*.jobs)", said)

    def test_a_client_outside_of_the_pods_shows_its_certificate_where_it_has_to(self):
        jobs = "pools.default.jobs={retail}"
        shown = "export MUSTER_SERVER=localhost:7700 MUSTER_TLS_CERT=client.crt MUSTER_TLS_KEY=client.key MUSTER_TLS_ROOTS="
        for values in ((jobs,), (jobs, "policy.enabled=true"), ("policy.enabled=true", "tests.enabled=false")):
            self.assertIn(shown, self.notes(*EXISTING_TLS, *values))
        self.assertNotIn("MUSTER_TLS", self.notes(jobs))

    def test_under_a_policy_a_batch_is_pasted_with_the_certificate_of_helm_test(self):
        for values in ((), ("pools.default.jobs={retail,helm-test=4}",)):
            said = self.notes(*EXISTING_TLS, "policy.enabled=true", *values)
            self.assertIn('get secret client -o "go-template={{index .data \\"$file\\" | base64decode}}"', said)
            self.assertIn("name: helm-test\n", said)
            self.assertNotIn("with the `muster` command on your machine", said)
        # The pod's own certificate is good for all without one.
        self.assertNotIn("get secret", self.notes(*EXISTING_TLS))

    def test_it_says_why_there_is_no_helm_test(self):
        self.assertIn("helm test muster", self.notes())
        said = self.notes(*GATEWAY, "pools.default.jobs={retail}")  # whose pod is there
        self.assertIn("asks the queue gateway alone: no pool works for its job", said)
        said = self.notes("tests.enabled=false")
        self.assertIn("tests.enabled is false", said)
        self.assertNotIn("no pool works", said)


class ReadmeTest(ChartTest):
    def test_the_chart_shows_a_current_reference_of_its_values(self):
        done = subprocess.run([sys.executable, "-B", chart.ROOT / "scripts/make_chart_docs", "--check"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        shown = chart.helm("show", "readme", CHART).stdout
        for value in ("`nats.replicas`", "`scaler.takeOver`", "`processor.scale.sla.max`", "`pools.NAME`"):
            self.assertIn(f"| {value} |", shown)


class BurstTest(ChartTest):
    """What the pod of `helm test` is told; tests/helm/burst_test.py runs it."""

    AGENT = ("scaler.mode=agent", "pools.default.jobs={retail,helm-test}")

    def told(self, *values):
        [container] = self.render(*values).get("Pod", "muster-test")["spec"]["containers"]
        return {each["name"]: each["value"] for each in container["env"]}

    def test_it_begins_and_ends_at_zero_where_the_agents_number_goes_there(self):
        keda = ("scaler.mode=keda", "pools.default.jobs={helm-test=4}", "metrics.enabled=true")
        for values in (self.AGENT, keda):
            self.assertEqual(self.told(*values)["POOLS"], "default")
        # A pool that works for the job, and grows for another one.
        self.assertEqual(self.told(*self.AGENT, "pools.more.jobs={helm-test}", "pools.more.scale.queues={more}",
                                   "pools.other.jobs={other}")["POOLS"], "default")
        for values in ((), (*self.AGENT, "pools.default.scale.min=1"), (*self.AGENT, "tests.zeroSeconds=0"),
                       (*self.AGENT, "scaler.agent.act=false"), (*keda, "scaler.keda.prometheus=http://p:9090"),
                       ("scaler.mode=hpa", "pools.default.jobs={helm-test}", "metrics.enabled=true")):
            self.assertEqual(self.told(*values)["POOLS"], "", values)

    def test_its_promises_are_those_of_the_values(self):
        bounds = ("SLA_SECONDS", "P95_SECONDS", "ZERO_SECONDS")

        def told(*values):
            return tuple(int(self.told(*values)[each]) for each in bounds)
        self.assertEqual(told(), (120, 90, 60))
        self.assertEqual(told("tests.slaSeconds=1", "tests.zeroSeconds=9"), (1, 1, 9))
        self.assertEqual(told("tests.slaSeconds=400", "tests.p95Seconds=7"), (400, 7, 60))
        self.assertIn("tests.p95Seconds is 200, tests.slaSeconds 120", self.refusal("tests.p95Seconds=200"))

    def test_the_policy_lets_it_see_replicas_only_where_it_looks_at_them(self):
        def methods(*values):
            text = self.render(*EXISTING_TLS, "policy.enabled=true", *values).get("ConfigMap", "muster-policy")["data"]
            [role] = [role for role in yaml.safe_load(text["policy.yaml"])["roles"] if role["name"] == "helm-test"]
            return role["methods"]
        self.assertIn("muster.v1.ScalingService/ListTargets", methods(*self.AGENT))
        self.assertEqual([each for each in methods() if "Scaling" in each], [])


if __name__ == "__main__":
    chart.main()
