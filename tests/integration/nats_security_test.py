# SPDX-License-Identifier: Apache-2.0
"""A NATS server that authenticates its clients, and services that authenticate their server.

The server, its certificates and its credentials are real.
"""

import json
import unittest

import harness
from harness import retail_input
from mesh import NATS_SERVERS, Mesh, Program
from mesh_case import MeshTest
from nats_secrets import Authority, Operator

ROWS = 1000
# The time in which a service must recover: it tries again several times a second.
RECOVERY_SECONDS = 15


def password(text):
    """The configuration of a server whose only user has this password."""
    return f"authorization {{ user: muster, password: {text} }}"


class SecuredMesh(Mesh):
    """The test sets the server's demands, and the credentials of the services."""

    def __init__(self, folder, nats_server):
        super().__init__(folder, nats_server, 1)
        self.config = folder / "nats.conf"
        self.scheme, self.user, self.options = "nats", "", []
        self.demand("")

    def demand(self, what):
        """Sets the demand for the server's next start."""
        self.config.write_text(f'listen: "{self.nats_addresses[0]}"\n'
                               f'jetstream {{ store_dir: "{self.folder / "nats0"}" }}\n{what}')

    def show(self, *options, scheme="nats", user=""):
        self.options, self.scheme, self.user = options, scheme, user

    def start_nats(self, number=0):
        self.nats = self.add(Program([self.nats_server, "-c", self.config], "Server is ready"))
        return self.nats

    def nats_arguments(self):
        return ["--nats", f"{self.scheme}://{self.user}{self.nats_addresses[0]}", *self.options]


class NatsSecurityTest(MeshTest):
    nats_server = NATS_SERVERS[-1]

    def make_mesh(self):
        return SecuredMesh(self.folder, self.nats_server)

    def start_mesh(self):
        pass  # each test starts the programs that it needs

    def authority(self, name="ours"):
        return Authority(self.folder, name)

    def demand_tls(self, authority, of_clients=None, alternative="IP:127.0.0.1"):
        """One authority signs the server's certificate, another one the clients'."""
        certificate, key = authority.sign("server", alternative)
        self.mesh.demand(f'tls {{ cert_file: "{certificate}", key_file: "{key}", '
                         f'ca_file: "{(of_clients or authority).certificate}", verify: true }}')

    def show_tls(self, trusted, signed_by):
        certificate, key = signed_by.sign("client")
        self.mesh.show("--nats-ca", trusted.certificate, "--nats-cert", certificate, "--nats-key",
                       key, scheme="tls")

    def begin(self):
        """Starts the server, and a service that connects to it."""
        self.mesh.start_nats().await_ready()
        return self.mesh.start_role("initiator", self.mesh.server)

    def change_demand(self, change):
        self.mesh.nats.stop()
        change()
        self.mesh.nats.restart()

    def said(self, program):
        return "".join(program.log.lines)

    def assert_refused(self, service, why):
        service.await_line(why, RECOVERY_SECONDS)
        self.assertNotIn(service.when_ready, self.said(service))


class RightSecretsTest(NatsSecurityTest):
    def assert_works(self):
        self.mesh.start()
        self.apply_billing()
        data = retail_input(ROWS)
        self.assert_exact(data, ROWS, self.submit("billing", data))

    def nats_finding(self, *secrets):
        """What the doctor finds that connects with these secrets."""
        url = f"tls://{self.mesh.nats_addresses[0]}"
        findings = json.loads(self.ask("doctor", "--nats", url, *secrets, "-o", "json").stdout)
        [found] = [one for one in findings if one["what"].startswith("NATS server tls:")]
        return found

    def assert_nobody_told(self, secret):
        for program in self.mesh.programs:
            self.assertNotIn(secret, self.said(program))

    def test_a_mesh_works_over_tls_with_certificates_on_both_sides(self):
        ours, clients = self.authority(), self.authority("clients")
        self.demand_tls(ours, clients)
        self.show_tls(ours, signed_by=clients)
        self.assert_works()
        self.assertEqual(self.nats_finding(*self.mesh.options)["health"], "ok")
        shown_none = self.nats_finding("--nats-ca", ours.certificate)
        self.assertEqual(shown_none["health"], "wrong")
        self.assertIn("the server may ask for a certificate, and none is named", shown_none["found"])

    def test_a_mesh_works_with_a_user_and_a_password(self):
        self.mesh.demand(password("0pen-sesame"))
        self.mesh.show(user="muster:0pen-sesame@")
        self.assert_works()
        self.assert_nobody_told("0pen-sesame")

    def test_a_mesh_works_with_a_token(self):
        self.mesh.demand("authorization { token: 0pen-sesame }")
        self.mesh.show(user="0pen-sesame@")
        self.assert_works()
        self.assert_nobody_told("0pen-sesame")

    def test_a_mesh_works_with_a_file_of_credentials(self):
        operator = Operator(self.folder)
        self.mesh.demand(operator.server_config())
        self.mesh.show("--nats-credentials", operator.credentials("muster"))
        self.assert_works()

    def test_a_mesh_works_with_credentials_over_tls(self):
        ours = self.authority()
        certificate, key = ours.sign("server")
        operator = Operator(self.folder)
        self.mesh.demand(operator.server_config() +
                         f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}')
        self.mesh.show("--nats-ca", ours.certificate, "--nats-credentials",
                       operator.credentials("muster"), scheme="tls")
        self.assert_works()

    def test_what_the_pages_allow_a_user_is_enough(self):
        self.mesh.demand("""accounts { MUSTER {
          jetstream: enabled
          users: [ { user: muster, password: 0pen-sesame, permissions: {
            publish: ["muster.>", "$JS.API.>", "$JS.ACK.>", "$KV.muster.>", "$O.muster.>", "_INBOX.>"]
            subscribe: ["muster.>", "_INBOX.>", "$JS.EVENT.ADVISORY.CONSUMER.LEADER_ELECTED.>"] } } ]
        } }""")
        self.mesh.show(user="muster:0pen-sesame@")
        self.assert_works()
        for program in self.mesh.programs:
            self.assertNotIn("Permissions Violation", self.said(program))


class WrongSecretsTest(NatsSecurityTest):
    """A service that the server refuses, or that refuses the server's certificate."""

    def test_a_server_whose_certificate_another_authority_signed_is_not_trusted(self):
        ours = self.authority()
        self.demand_tls(self.authority("theirs"), of_clients=ours)
        self.show_tls(ours, signed_by=ours)
        self.assert_refused(self.begin(), "connecting to tls://")

    def test_a_server_whose_certificate_is_for_another_host_is_not_trusted(self):
        ours = self.authority()
        self.demand_tls(ours, alternative="DNS:elsewhere.example")
        self.show_tls(ours, signed_by=ours)
        self.assert_refused(self.begin(), "connecting to tls://")

    def test_a_service_whose_certificate_another_authority_signed_is_not_let_in(self):
        ours = self.authority()
        self.demand_tls(ours)
        self.show_tls(ours, signed_by=self.authority("theirs"))
        service = self.begin()
        self.mesh.nats.await_line("TLS handshake error", RECOVERY_SECONDS)
        self.assert_refused(service, "connecting to tls://")

    def test_a_server_without_tls_is_not_spoken_to_where_an_authority_is_named(self):
        ours = self.authority()
        self.show_tls(ours, signed_by=ours)
        self.assert_refused(self.begin(), "Secure Connection not available")

    def test_a_server_without_tls_is_not_spoken_to_where_the_url_asks_for_tls(self):
        self.mesh.show(scheme="tls")
        self.assert_refused(self.begin(), "Secure Connection not available")

    def test_a_wrong_password_is_refused_and_not_told(self):
        self.mesh.demand(password("0pen-sesame"))
        self.mesh.show(user="muster:abracadabra@")
        service = self.begin()
        self.assert_refused(service, "Authentication Violation")
        self.mesh.nats.await_line("authentication error", RECOVERY_SECONDS)
        self.assertNotIn("abracadabra", self.said(service))

    def test_a_wrong_token_is_refused_and_not_told(self):
        self.mesh.demand("authorization { token: 0pen-sesame }")
        self.mesh.show(user="abracadabra@")
        service = self.begin()
        self.assert_refused(service, "Authentication Violation")
        self.assertNotIn("abracadabra", self.said(service))

    def test_credentials_that_another_operator_gave_are_refused(self):
        self.mesh.demand(Operator(self.folder).server_config())
        self.mesh.show("--nats-credentials", Operator(self.folder).credentials("stranger"))
        self.assert_refused(self.begin(), "Authentication Violation")


class MendedTest(NatsSecurityTest):
    """The operator mends the server; the services need no restart."""

    def assert_ready_when(self, service, mend):
        self.change_demand(mend)
        service.await_line(service.when_ready, RECOVERY_SECONDS)

    def assert_outlasts(self, wrong, right, refused):
        """A service that is ready, until the server comes back as another one for a while."""
        right()
        service = self.begin()
        service.await_ready()
        self.change_demand(wrong)
        service.await_line('msg="not ready"', RECOVERY_SECONDS)
        # More often than the client library tolerates.
        self.mesh.nats.await_line(refused, RECOVERY_SECONDS, times=4)
        self.assertIsNone(service.process.poll(), self.said(service))
        self.change_demand(right)
        service.await_line("the NATS connection is back", RECOVERY_SECONDS)
        self.assertEqual(self.answer("batch", "list"), [])

    def test_a_service_waits_for_a_server_with_a_certificate_that_it_trusts(self):
        ours, theirs = self.authority(), self.authority("theirs")
        self.demand_tls(theirs, of_clients=ours)
        self.show_tls(ours, signed_by=ours)
        service = self.begin()
        self.assert_refused(service, "connecting to tls://")
        self.assert_ready_when(service, lambda: self.demand_tls(ours))

    def test_a_service_waits_for_a_server_that_knows_its_password(self):
        self.mesh.demand(password("0pen-sesame"))
        self.mesh.show(user="muster:abracadabra@")
        service = self.begin()
        self.assert_refused(service, "Authentication Violation")
        self.assert_ready_when(service, lambda: self.mesh.demand(password("abracadabra")))

    def test_a_service_waits_for_a_server_that_knows_its_operator(self):
        ours = Operator(self.folder)
        self.mesh.demand(Operator(self.folder).server_config())
        self.mesh.show("--nats-credentials", ours.credentials("muster"))
        service = self.begin()
        self.assert_refused(service, "Authentication Violation")
        self.assert_ready_when(service, lambda: self.mesh.demand(ours.server_config()))

    def test_a_service_that_runs_outlasts_a_server_with_a_wrong_certificate(self):
        ours, theirs = self.authority(), self.authority("theirs")
        self.show_tls(ours, signed_by=ours)
        self.assert_outlasts(wrong=lambda: self.demand_tls(theirs, of_clients=ours),
                             right=lambda: self.demand_tls(ours), refused="TLS handshake error")

    def test_a_service_whose_password_is_wrong_by_now_ends_and_started_again_waits(self):
        self.mesh.show(user="muster:0pen-sesame@")
        service = self.begin()
        service.await_ready()
        self.change_demand(lambda: self.mesh.demand(password("abracadabra")))
        service.await_line("the NATS server refuses this instance")
        self.assertEqual(service.wait(), 1)
        service.start()
        self.assert_refused(service, "Authentication Violation")
        self.assert_ready_when(service, lambda: self.mesh.demand(password("0pen-sesame")))


class ClearWordsTest(NatsSecurityTest):
    def test_a_service_says_what_is_wrong_with_a_certificate(self):
        ours = self.authority()
        self.demand_tls(self.authority("theirs"), of_clients=ours)
        self.show_tls(ours, signed_by=ours)
        self.assert_refused(self.begin(), "unable to get local issuer certificate")

    def test_a_service_says_which_file_of_credentials_is_not_there(self):
        self.mesh.show("--nats-credentials", self.folder / "nowhere.creds")
        self.assert_refused(self.begin(), "nowhere.creds")


if __name__ == "__main__":
    harness.main()
