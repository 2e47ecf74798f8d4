#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the chart tells the services of itself: options and variables that they know."""

import functools
import os
import pathlib
import re
import subprocess
import tempfile

import chart
from chart import ChartTest
from matrix import EXISTING_TLS, each_rendered


class OptionsTest(ChartTest):
    """What the services are told is what they know."""

    PROGRAMS = {component: os.environ.get(f"MUSTER_{variable}_PROGRAM")
                for component, variable in (("initiator", "INITIATOR"), ("controller", "CONTROLLER"),
                                            ("processor", "PROCESSOR"),
                                            ("scaling-agent", "SCALING_AGENT"),
                                            ("queue-gateway", "QUEUE_GATEWAY"))}

    @functools.lru_cache(maxsize=None)
    def known_to(self, component):
        program = self.PROGRAMS[component]
        if not program:
            self.skipTest(f"no variable names muster-{component}")
        shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"--[a-z][a-z-]+", shown))

    def test_every_option_and_every_variable_is_in_the_help(self):
        for name, manifests in each_rendered():
            for one in manifests.workloads():
                component = one["metadata"]["labels"]["app.kubernetes.io/component"]
                if component == "nats":
                    continue
                container = one["spec"]["template"]["spec"]["containers"][0]
                told = {argument.partition("=")[0] for argument in container["args"]}
                told |= {"--" + env["name"][len("MUSTER_"):].lower().replace("_", "-")
                         for env in container["env"] if env["name"].startswith("MUSTER_")}
                known = self.known_to(component)
                with self.subTest(name, component=component):
                    self.assertLessEqual(told, known)

    def test_an_option_is_given_once_but_for_lists(self):
        lists = {"--job", "--handler-programs", "--handler-env"}
        for name, manifests in each_rendered():
            for _, pod in manifests.pods():
                told = [argument.partition("=")[0] for argument in pod["containers"][0].get("args", [])]
                repeated = {option for option in told if told.count(option) > 1} - lists
                self.assertEqual(repeated, set(), name)

    def test_a_pool_parks_for_a_release_and_the_lease_of_the_report_is_set(self):
        manifests = self.render("controller.ownershipLease=30s", "pools.sale.standby=black-friday")
        arguments = {name: manifests.container(kind, f"muster-{name}")["args"] for kind, name in (
            ("StatefulSet", "controller"), ("Deployment", "processor-sale"),
            ("Deployment", "processor-default"))}
        self.assertIn("--ownership-lease=30s", arguments["controller"])
        self.assertIn("--standby=black-friday", arguments["processor-sale"])
        self.assertNotIn("--standby", " ".join(arguments["processor-default"]))
        self.assertIn("standby", self.refusal("pools.sale.standby=black friday"))
        self.assertIn("ownershipLease", self.refusal("controller.ownershipLease=soon"))

    def test_an_initiator_is_told_what_it_holds_of_uploads_that_were_cut_off(self):
        manifests = self.render("initiator.maxStoppedUploads=2500", "initiator.maxStoppedUploadBytes=8GiB")
        arguments = manifests.container("StatefulSet", "muster-initiator")["args"]
        self.assertIn("--max-stopped-uploads=2500", arguments)
        self.assertIn("--max-stopped-upload-bytes=8GiB", arguments)
        self.assertNotIn("--max-stopped", " ".join(
            self.render().container("StatefulSet", "muster-initiator")["args"]))
        self.assertIn("maxStoppedUploads", self.refusal("initiator.maxStoppedUploads=0"))
        self.assertIn("maxStoppedUploadBytes", self.refusal("initiator.maxStoppedUploadBytes=much"))

    def test_initiators_advertise_a_name_that_stays(self):
        [advertised] = [argument for argument in
                        self.render().container("StatefulSet", "muster-initiator")["args"]
                        if argument.startswith("--advertise=")]
        self.assertEqual(advertised, "--advertise=$(POD_NAME).muster-initiator.mesh.svc."
                                     "cluster.local:7700")

    def assert_advertises(self, values, advertised):
        """The processor rendered with these values advertises for each address of its pod what is said."""
        container = self.render(*values).container("Deployment", "muster-processor-default")
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "muster-processor"
            program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
            program.chmod(0o755)
            for address, name in advertised.items():
                said = subprocess.run(
                    [*container["command"], *container["args"]], capture_output=True, text=True,
                    check=True, env={"PATH": f"{folder}:{os.environ['PATH']}", "POD_IP": address})
                self.assertEqual(said.stdout.splitlines(), [f"--advertise={name}:7701", *container["args"]])

    def test_with_tls_a_processor_advertises_a_name_of_its_address(self):
        self.assert_advertises(EXISTING_TLS, {"10.0.12.7": "10-0-12-7.mesh.pod.cluster.local",
                                              "fd00::7:1": "fd00--7-1.mesh.pod.cluster.local"})

    def test_without_tls_it_advertises_its_address_as_a_port_may_follow(self):
        self.assert_advertises(("listenAddress=[::]",), {"10.0.12.7": "10.0.12.7", "fd00::7:1": "[fd00::7:1]"})

    def test_plaintext_is_allowed_only_without_tls(self):
        for name, manifests in each_rendered():
            for _, pod in manifests.pods():
                container = pod["containers"][0]
                if container["name"] in ("nats", "burst", "ready"):
                    continue
                has_tls = "MUSTER_TLS_CERT" in {env["name"] for env in container["env"]}
                self.assertNotEqual("--allow-plaintext" in container["args"], has_tls, name)
                self.assertNotIn("--allow-any-client", container["args"])


if __name__ == "__main__":
    chart.main()
