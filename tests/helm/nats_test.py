#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The NATS servers of the chart, and one that is there already."""

import base64
import os
import pathlib
import shutil
import subprocess
import tempfile

import chart
from chart import CHART, NAMESPACE, ChartTest
from matrix import rendered


class NatsTest(ChartTest):
    def configuration(self, *values, files=()):
        manifests = self.render(*values, files=files)
        return manifests, manifests.get("ConfigMap", "muster-nats")["data"]["nats.conf"]

    def test_services_get_the_url_with_its_password_from_the_secret(self):
        manifests = rendered("defaults")
        secret = manifests.get("Secret", "muster-nats")["stringData"]
        self.assertEqual(secret["url"], f"nats://muster:{secret['password']}@"
                                        "muster-nats-0.muster-nats.mesh.svc.cluster.local:4222")
        self.assertRegex(secret["password"], "^m[A-Za-z0-9]{31}$")
        container = manifests.container("StatefulSet", "muster-controller")
        self.assertIn({"name": "MUSTER_NATS", "valueFrom": {"secretKeyRef": {
            "name": "muster-nats", "key": "url"}}}, container["env"])

    # The servers got an empty password, and let in whoever named the user.
    def test_a_secret_without_its_password_is_refused_by_name(self):
        def on(data):
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "muster-nats", "namespace": NAMESPACE,
                      "annotations": {"meta.helm.sh/release-name": chart.RELEASE,
                                      "meta.helm.sh/release-namespace": NAMESPACE},
                      "labels": {"app.kubernetes.io/managed-by": "Helm"}}, **data}
            return chart.template_on({f"/api/v1/namespaces/{NAMESPACE}/secrets/muster-nats": secret})

        kept = on({"data": {"password": base64.b64encode(b"mine").decode()}})
        self.assertEqual(kept.returncode, 0, kept.stderr)
        secret = chart.Manifests(kept.stdout).get("Secret", "muster-nats")["stringData"]
        self.assertEqual(secret["password"], "mine")
        for data in ({}, {"data": {"url": "bmF0czo="}}, {"data": {"password": ""}}):
            refused = on(data)
            self.assertNotEqual(refused.returncode, 0, "it was taken")
            self.assertIn("secret muster-nats in namespace mesh has no key password", refused.stderr)

    def test_no_service_listens_for_prometheus_unless_the_values_say_so(self):
        nowhere = {"name": "MUSTER_METRICS", "value": ""}
        for component in ("initiator", "controller"):
            container = rendered("defaults").container("StatefulSet", f"muster-{component}")
            self.assertIn(nowhere, container["env"])
            container = self.render("metrics.enabled=true").container("StatefulSet", f"muster-{component}")
            self.assertNotIn(nowhere, container["env"])
            self.assertIn("--allow-plaintext-metrics", container["args"])

    def test_what_three_servers_store_has_three_copies_and_tls(self):
        manifests = rendered("production")
        url = manifests.get("Secret", "muster-nats")["stringData"]["url"]
        self.assertEqual(url.count("tls://muster:"), 3)
        self.assertEqual(manifests.get("StatefulSet", "muster-nats")["spec"]["replicas"], 3)
        arguments = manifests.container("StatefulSet", "muster-initiator")["args"]
        self.assertIn("--replicas=3", arguments)
        self.assertIn("--ack-survives=power", arguments)

    def test_the_server_accepts_its_configuration(self):
        servers = os.environ.get("MUSTER_NATS_SERVERS", "nats-server").split(":")
        server = shutil.which(servers[-1], path=os.environ["PATH"] + ":/usr/sbin")
        if server is None:
            self.skipTest("there is no nats-server")
        for values in ((), ("nats.replicas=3",), ("nats.memoryStore=160MB", "nats.fileStore=1GB")):
            _, text = self.configuration(*values)
            with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
                file.write(text)
                file.flush()
                done = subprocess.run([server, "-t", "-c", file.name], capture_output=True, text=True,
                                      env={"POD_NAME": "muster-nats-0", "MUSTER_NATS_PASSWORD": "m1e5"})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_servers_start_again_whenever_their_file_is_another(self):
        def checksum(manifests):
            pod = manifests.get("StatefulSet", "muster-nats")["spec"]["template"]
            return pod["metadata"]["annotations"]["checksum/config"]

        self.assertEqual(checksum(self.render()), checksum(self.render("nats.resources.limits.memory=2Gi")))
        self.assertNotEqual(checksum(self.render()), checksum(self.render("mesh.bucket=other")))
        with tempfile.TemporaryDirectory() as folder:  # a later chart, whose file lets services publish more
            copy = pathlib.Path(folder) / "muster"
            shutil.copytree(CHART, copy)
            for template in copy.glob("templates/*nats*"):
                text = template.read_text(encoding="utf-8")
                template.write_text(text.replace('"_INBOX.>"]', '"_INBOX.>", "more.>"]'), encoding="utf-8")
            done = chart.helm("template", "muster", copy, "--namespace", NAMESPACE)
        self.assertEqual(done.returncode, 0, done.stderr)
        later = chart.Manifests(done.stdout)
        self.assertIn('"more.>"', later.get("ConfigMap", "muster-nats")["data"]["nats.conf"])
        self.assertNotEqual(checksum(self.render()), checksum(later))

    def test_an_existing_server_is_the_only_one(self):
        manifests = rendered("an existing NATS")
        self.assertNotIn("muster-nats", manifests.of("StatefulSet"))
        self.assertEqual(manifests.of("Secret"), {})
        self.assertIn({"name": "MUSTER_NATS", "value": "nats://n:4222"},
                      manifests.container("StatefulSet", "muster-initiator")["env"])

    def test_values_that_contradict_each_other_are_refused(self):
        for values, said in (
                (("nats.enabled=false",), "nats.url or nats.existingSecret"),
                (("nats.url=nats://n:4222",), "set nats.enabled to false"),
                (("nats.enabled=false", "nats.url=nats://me:secret@n:4222"), "nats.existingSecret, key url"),
                (("nats.enabled=false", "nats.url=tls://n:4222", "nats.caKey=ca.crt"),
                 "nats.caKey is ca.crt, which is a key of nats.existingSecret"),
                (("nats.credentialsKey=creds",), "nats.credentialsKey is creds, which is a key of nats.existingSecret"),
                (("tls.enabled=true",), "tls.existingSecret"),
                (("policy.enabled=true",), "policy.enabled needs tls.enabled"),
                (("tls.enabled=true", "tls.certManager.enabled=true"), "issuerRef.name"),
                (("metrics.serviceMonitor.enabled=true",), "need metrics.enabled")):
            self.assertIn(said, self.refusal(*values))


if __name__ == "__main__":
    chart.main()
