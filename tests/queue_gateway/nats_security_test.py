# SPDX-License-Identifier: Apache-2.0
"""A gateway and its NATS server show each other who they are."""

import contextlib
import pathlib
import tempfile
import unittest

import gateway
import mesh
from gateway import Client, message
from nats_secrets import Authority, Operator


class NatsSecurityTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.address = mesh.free_address()

    def start_server(self, demands):
        config = self.folder / "nats.conf"
        config.write_text(f'listen: "{self.address}"\n'
                          f'jetstream {{ store_dir: "{self.folder / "nats"}" }}\n{demands}')
        server = mesh.Program([gateway.nats_program(), "-c", config], "Server is ready")
        self.addCleanup(server.kill)
        server.await_ready()

    def start_gateway(self, *arguments, **named):
        running = gateway.Gateway(self.folder / "data", *arguments, **named)
        self.addCleanup(running.kill)
        return running

    def assert_works(self, running):
        with contextlib.closing(Client(running.address)) as client:
            self.assertEqual(client.ask("PUT", "/secured").said, "201")
            self.assertEqual(client.ask("POST", "/secured/messages", message("x")).said, "201")

    def demand_tls(self, more=""):
        ours = Authority(self.folder, "ours")
        certificate, key = ours.sign("server")
        self.start_server(f'tls {{ cert_file: "{certificate}", key_file: "{key}", '
                          f'ca_file: "{ours.certificate}", verify: true }}\n{more}')
        certificate, key = ours.sign("client")
        return ours, ["--nats-cert", certificate, "--nats-key", key]

    def test_works_over_tls_with_certificates_and_credentials(self):
        operator = Operator(self.folder)
        ours, shown = self.demand_tls(operator.server_config())
        self.assert_works(self.start_gateway(
            "--nats", f"tls://{self.address}", "--nats-ca", ours.certificate, *shown,
            "--nats-credentials", operator.credentials("gateway")))

    def test_waits_for_a_server_that_it_can_trust(self):
        _, shown = self.demand_tls()
        others = Authority(self.folder, "others")
        running = self.start_gateway("--nats", f"tls://{self.address}", "--nats-ca",
                                     others.certificate, *shown, wait=False)
        running.await_line("is asked until it answers")
        self.assertEqual(running.asked_for_health("/readyz"), (503, "waiting for its stores"))
        self.assertEqual(running.stop(), 0)

    def test_never_tells_its_password(self):
        self.start_server("authorization { user: muster, password: 0pen-sesame }")
        running = self.start_gateway("--nats", f"nats://muster:0pen-sesame@{self.address}",
                                     wait=False)
        line = running.await_line("msg=ready.*").string
        self.assertNotIn("0pen-sesame", line)
        self.assertEqual(running.stop(), 0)


if __name__ == "__main__":
    unittest.main()
