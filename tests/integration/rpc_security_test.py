# SPDX-License-Identifier: Apache-2.0
"""A whole mesh whose services show each other certificates, under the policy of docs/policy.md.

The certificates are real, and the policy is the page's own text.
"""

import os
import pathlib
import re
import shutil
import tempfile

import harness
from harness import ROOT, looks, retail_input
from mesh import NATS_SERVERS, READY_SECONDS, Mesh
from mesh_case import MeshTest
from nats_secrets import Authority

ROWS = 1000
UNREACHABLE = 5


def policy_of_the_page():
    page = (ROOT / "docs/policy.md").read_text(encoding="utf-8")
    [policy] = re.findall(r"^```yaml\n(roles:\n.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return policy


class TlsMesh(Mesh):
    """Every service has a certificate in its host's name, and demands one of every caller. Each
    certificate lies with its key in a place where both can be replaced, as the page says."""

    ROLES = "initiator", "controller", "processor"

    def __init__(self, folder, nats_server):
        super().__init__(folder, nats_server, 1)
        self.authority = Authority(folder, "mesh")
        self.roots = folder / "roots.pem"
        self.trust(self.authority)
        self.renew_roles(self.authority)
        self.policy = folder / "policy.yaml"
        self.policy.write_text(policy_of_the_page())

    def start_role(self, role, address=None, *more):
        return super().start_role(role, address, *self.shown_by(role, self.roots), "--policy",
                                  self.policy, *more)

    def shown_by(self, name, roots):
        """The options by which a program shows a certificate."""
        place = self.folder / name / "tls"
        return ["--tls-cert", place / "certificate.pem", "--tls-key", place / "key.pem",
                "--tls-roots", roots]

    def renew_roles(self, authority):
        for role in self.ROLES:
            self.renew(role, authority, f"DNS:{role}.mesh.example.org,IP:127.0.0.1")

    def renew(self, name, authority, alternative):
        certificate, key = authority.sign(name, alternative, called=name)
        made = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        shutil.copy(certificate, made / "certificate.pem")
        shutil.copy(key, made / "key.pem")
        (self.folder / name).mkdir(exist_ok=True)
        (made / "link").symlink_to(made)
        os.replace(made / "link", self.folder / name / "tls")

    def trust(self, *authorities):
        text = "".join(authority.certificate.read_text() for authority in authorities)
        self.roots.with_suffix(".new").write_text(text)
        os.replace(self.roots.with_suffix(".new"), self.roots)


class RpcSecurityTest(MeshTest):
    nats_server = NATS_SERVERS[-1]

    def make_mesh(self):
        return TlsMesh(self.folder, self.nats_server)

    def setUp(self):
        self.shown = []
        super().setUp()
        self.act_as("ops")
        self.apply_billing()

    def muster(self, *arguments, cwd=None):
        return super().muster(*arguments, *self.shown, cwd=cwd)

    def act_as(self, name, authority=None, trusted=None):
        """Makes the test's calls with a certificate of `authority`, and trusts servers of
        `trusted`; the default for both is the mesh's authority."""
        self.mesh.renew(name, authority or self.mesh.authority, f"DNS:{name}.example.org")
        self.shown = self.mesh.shown_by(name, (trusted or self.mesh.authority).certificate)

    def assert_denied(self, done, method, caller):
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(f"the server's policy does not allow muster.v1.{method} to {caller}",
                      done.stderr)


class PolicyTest(RpcSecurityTest):
    def test_a_submitter_sees_a_batch_through_to_its_receipt(self):
        self.act_as("shop")
        data = retail_input(ROWS)
        result = self.submit("billing", data)
        self.assert_exact(data, ROWS, result)
        [listed] = self.answer("batch", "list")
        self.assertEqual(listed["batch"], result["batch"])
        self.assertEqual(self.ask("batch", "watch", result["batch"]).returncode, 0)

    def test_a_submitter_is_told_what_was_rejected(self):
        self.act_as("shop")
        data = self.retail_rows((3, "0.1", "7", "France"), ("three", "0.1", "7", "France"))
        done = self.muster(*self.submit_arguments("billing", data))
        self.assertEqual(done.returncode, 3, done.stderr)
        shown = self.ask("batch", "get", 1)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("three", shown.stdout)

    def test_a_submitter_cannot_purge_a_queue_nor_delete_a_job_and_an_operator_can(self):
        self.submit("billing", retail_input(ROWS))
        queue = self.answer("queue", "list")[0]["queue"]
        self.act_as("shop")
        self.assert_denied(self.ask("queue", "purge", queue), "QueueService/PurgeQueue", "cn:shop")
        self.assert_denied(self.ask("job", "delete", "billing"), "JobService/DeleteJob", "cn:shop")
        self.assert_denied(self.ask("release", "go"), "ReleaseService/Release", "cn:shop")
        self.act_as("ops")
        self.assertEqual(self.ask("release", "go").returncode, 0)
        self.assertEqual(self.ask("queue", "purge", queue).returncode, 0)
        self.assertEqual(self.ask("job", "delete", "billing").returncode, 0)

    def test_nobody_without_a_role_may_do_anything(self):
        self.act_as("stranger")
        self.assert_denied(self.ask("batch", "list"), "BatchService/ListBatches", "cn:stranger")

    def test_nobody_without_a_certificate_of_the_authority_gets_through(self):
        self.act_as("shop", authority=Authority(self.folder, "others"))
        self.assertEqual(self.ask("batch", "list").returncode, UNREACHABLE)
        self.shown = ["--tls-roots", self.mesh.authority.certificate]
        self.assertEqual(self.ask("batch", "list").returncode, UNREACHABLE)


class RenewalTest(RpcSecurityTest):
    def await_answer(self):
        for _ in looks(READY_SECONDS):
            if self.ask("batch", "list").returncode == 0:
                return
        self.fail("nobody who trusts the renewed authority alone is let in")

    def test_an_authority_is_replaced_while_the_mesh_works(self):
        self.submit("billing", retail_input(ROWS))  # now all services have connected to each other
        renewed = Authority(self.folder, "renewed")
        self.mesh.trust(self.mesh.authority, renewed)
        self.act_as("shop", authority=renewed)
        self.await_answer()
        self.mesh.renew_roles(renewed)
        self.act_as("shop", authority=renewed, trusted=renewed)
        self.await_answer()
        self.mesh.trust(renewed)
        # The restarted controller has only the new authority, and is called by an initiator that
        # was never restarted.
        self.mesh.controller.stop()
        self.mesh.controller.restart()
        data = retail_input(2 * ROWS)
        self.assert_exact(data, 2 * ROWS, self.submit("billing", data, "april"))


if __name__ == "__main__":
    harness.main()
