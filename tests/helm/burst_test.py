#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `helm test` runs: its script against answers that it must refuse, and against a real mesh whose
programs get the options, the certificates, the policy and the NATS configuration of the chart.

Needs the programs in the variables MUSTER and MUSTER_…_PROGRAM, and nats-server.
"""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

import chart
from chart import PRODUCTION, ROOT, ChartTest

sys.path.insert(0, str(ROOT / "tests/integration"))
from mesh import NATS_SERVERS, READY_SECONDS, Program, free_address  # noqa: E402
from nats_secrets import Authority  # noqa: E402

READY = '"msg":"ready"'
ROLES = {"initiator": ("StatefulSet", "muster-initiator", 7700),
         "controller": ("StatefulSet", "muster-controller", 7702),
         "processor": ("Deployment", "muster-processor-default", 7701)}


def write_burst(manifests, folder):
    """Writes the files of the test's ConfigMap, and returns the command and the variables of its pod."""
    for name, text in manifests.get("ConfigMap", "muster-test")["data"].items():
        (folder / name).write_text(text.replace("/test/", f"{folder}/"))
    [container] = manifests.get("Pod", "muster-test")["spec"]["containers"]
    return ["sh", folder / "burst.sh"], {one["name"]: one["value"] for one in container["env"]}


def notes_of(files=()):
    """helm shows notes only where there is a cluster, so a copy of the chart has them in a manifest."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "muster"
        shutil.copytree(chart.CHART, copy)
        (copy / "templates/NOTES.txt").rename(copy / "notes.txt")
        (copy / "templates/notes.yaml").write_text(
            'kind: Notes\nmetadata: {name: notes}\ntext: {{ tpl (.Files.Get "notes.txt") . | quote }}\n')
        done = chart.helm("template", chart.RELEASE, copy, "--namespace", chart.NAMESPACE,
                          "--kube-version", "1.36", *chart.options_of(files=files))
    return chart.Manifests(done.stdout).get("Notes", "notes")["text"]


class ScriptTest(ChartTest):
    """A `muster` that is none answers as each test says, and notes what it is asked."""

    # Six rows: quantities 1 to 6, prices 0.10 to 0.15, three countries in turn, two months in turn.
    RIGHT = """country,month,revenue,units,transactions
France,2026-01,0.100,1,1
Ghana,2026-02,0.220,2,1
Norway,2026-01,0.360,3,1
France,2026-02,0.520,4,1
Ghana,2026-01,0.700,5,1
Norway,2026-02,0.900,6,1
"""
    RECEIPT = """muster-receipt 1
batch 7
job helm-test
items 1
transactions 6
aggregated 6
rejected 0
dead_lettered 0
items_dead 0
conflicts 0
"""
    COMPLETE = {"batch": 7, "state": "complete", "items_counted": 1, "aggregated": 6, "rejected": 0, "dead_lettered": 0,
                "late_by_seconds": 0.0}
    # Each answer takes the first line of its file, until one is left.
    MUSTER = """#!/bin/sh
echo "$*" >> {folder}/asked
answer() {{
  sed -n 1p {folder}/$1
  [ "$(wc -l < {folder}/$1)" -eq 1 ] || sed -i 1d {folder}/$1
}}
case "$1 $2" in
  "batch submit") echo '{{"batch":7}}'; exit {submit_code} ;;
  "batch get") answer batches ;;
  "batch receipt") cat {folder}/receipt ;;
  "batch delete") exit {delete_code} ;;
  "report 7") cat {folder}/report.csv ;;
  "job get") cat {folder}/job_before 2> /dev/null ;;
  "scale status") answer replicas ;;
esac
"""

    def run_against(self, batches=(COMPLETE,), report=RIGHT, receipt=RECEIPT, checksum=None, replicas=(0,), job_before=None,
                    submit_code=0, delete_code=0, **environment):
        folder = tempfile.TemporaryDirectory(prefix="muster-burst-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        command, given = write_burst(self.render(), self.folder)
        (self.folder / "report.csv").write_text(report)
        checksum = checksum or hashlib.sha256(receipt.encode()).hexdigest()
        (self.folder / "receipt").write_text(f"{receipt}checksum {checksum}\n")
        (self.folder / "batches").write_text("".join(json.dumps(each) + "\n" for each in batches))
        (self.folder / "replicas").write_text("".join(
            json.dumps([{"target": "default", "replicas": {"ready": count, "starting": 0, "draining": 0, "standby": 0,
                                                           "tasks": 2},
                         "decision": {"replicas": 5}, "ready": 9, "in_flight": 9}]) + "\n" for count in replicas))
        if job_before is not None:
            (self.folder / "job_before").write_text(job_before)
        program = self.folder / "bin/muster"
        program.parent.mkdir()
        program.write_text(self.MUSTER.format(folder=self.folder, submit_code=submit_code, delete_code=delete_code))
        program.chmod(0o755)
        (self.folder / "tmp").mkdir()
        return subprocess.run(
            command, capture_output=True, text=True, timeout=chart.TIMEOUT_SECONDS,
            env={**given, "ROWS": "6", "TMPDIR": f"{self.folder}/tmp", "PATH": f"{program.parent}:{os.environ['PATH']}",
                 **environment})

    def assert_failed(self, done, *said):
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for each in said:
            self.assertIn(each, done.stdout)
        self.assertNotIn("passed", done.stdout)

    def asked(self):
        return (self.folder / "asked").read_text().splitlines()

    def test_exact_totals_in_time_pass_and_a_table_tells_the_figures(self):
        done = self.run_against()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("passed: batch 7: 6 transactions, exact, within 120 s", done.stdout)
        table = [re.split("  +", line.strip()) for line in done.stdout.splitlines() if "kept" in line]
        self.assertEqual([(row[0], row[2]) for row in table], [
            ("transactions", "exact sums"), ("receipt", "its sums and checksum"), ("complete", "120 s"),
            ("p95 of item latency", "90 s")])

    def test_totals_that_are_a_thousandth_off_fail(self):
        self.assert_failed(self.run_against(report=self.RIGHT.replace("0.900", "0.901")), "the totals of batch 7 differ",
                           "MISSED")

    def test_a_row_that_is_missing_fails(self):
        self.assert_failed(self.run_against(report=self.RIGHT.replace("Ghana,2026-01,0.700,5,1\n", "")),
                           "the totals of batch 7 differ")

    def test_a_transaction_that_was_not_aggregated_fails(self):
        self.assert_failed(self.run_against([{**self.COMPLETE, "aggregated": 5, "dead_lettered": 1}]),
                           "batch 7: dead_lettered is 1, and not 0")

    def test_a_receipt_that_does_not_prove_the_batch_fails(self):
        self.assert_failed(self.run_against(receipt=self.RECEIPT.replace("aggregated 6", "aggregated 5")),
                           "the receipt of batch 7 lacks 'aggregated 6'", "MISSED")
        self.assert_failed(self.run_against(checksum="0" * 64), "the receipt of batch 7 lacks 'checksum ")

    def test_a_promise_that_is_not_kept_fails_with_its_figure(self):
        self.assert_failed(self.run_against(P95_SECONDS="0"), "FAILED: p95 of item latency: ", "and 0 s are promised", "MISSED")
        self.assert_failed(self.run_against(SLA_SECONDS="0"), "FAILED: complete: ", "and 0 s are promised")
        self.assert_failed(self.run_against([{**self.COMPLETE, "late_by_seconds": 2.5}]), "batch 7 is 2.5 s late, says muster")

    def test_the_items_are_followed_while_the_controller_is_away(self):
        begun = {**self.COMPLETE, "state": "sealed", "items_counted": None}
        done = self.run_against([begun, {**begun, "items_counted": 1}, self.COMPLETE])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len([line for line in self.asked() if line.startswith("batch get")]), 3)

    def test_a_submit_that_is_refused_fails(self):
        self.assert_failed(self.run_against(submit_code=5), "submit ended with 5")

    def test_a_batch_that_is_never_complete_fails(self):
        begun = {**self.COMPLETE, "state": "sealed", "items_counted": 0}
        self.assert_failed(self.run_against([begun], SLA_SECONDS="-30"), "not complete")
        self.assert_failed(self.run_against([{**begun, "state": "cancelled"}]), "batch 7 was cancelled")

    def test_a_pool_that_goes_to_zero_is_at_zero_before_and_after(self):
        done = self.run_against(replicas=(1, 0, 2, 0), POOLS="default", ZERO_SECONDS="60")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "processors before +0 +0 +kept")
        self.assertRegex(done.stdout, r"back to zero +\S+ s +60 s +kept")
        order = [line.split()[0] for line in self.asked() if line.split()[0] in ("scale", "batch")]
        self.assertEqual(order[:3], ["scale", "scale", "batch"])

    def test_processors_that_stay_fail(self):
        self.assert_failed(self.run_against(replicas=(2,), POOLS="default", ZERO_SECONDS="0"),
                           "2 processors of default are still there after 0 s, so nothing begins from zero")
        self.assertNotIn("batch submit", "\n".join(self.asked()))
        self.assert_failed(self.run_against(replicas=(0, 3), POOLS="default", ZERO_SECONDS="0"),
                           "back to zero: 3 processors of default are still there 0 s after", "MISSED")

    def test_nothing_of_it_stays_whatever_comes_out(self):
        for given in ({}, {"report": ""}, {"P95_SECONDS": "0"}):
            self.run_against(**given)
            self.assertEqual(self.asked()[-2:], ["batch delete 7", "job delete helm-test"])
            self.assertEqual(list((self.folder / "tmp").iterdir()), [])

    def test_a_batch_that_has_not_ended_is_cancelled_first(self):
        self.assert_failed(self.run_against(delete_code=1), "batch 7 is not deleted")
        self.assertIn("batch cancel 7 --reason helm test has ended", self.asked())

    def test_a_job_that_was_there_before_is_what_it_was(self):
        self.run_against(job_before="name: helm-test\n")
        self.assertRegex(self.asked()[-1], r"job apply \S+/before.yaml")


# The kubelet's gRPC probe: plaintext, and 1 means SERVING.
PROBE = """
import sys, grpc
check = grpc.insecure_channel(sys.argv[1]).unary_unary("/grpc.health.v1.Health/Check")
sys.exit(check(b"", timeout=30) != bytes([8, 1]))
"""


class RenderedMesh:
    """The containers of the chart as processes of this machine."""

    def __init__(self, manifests, folder):
        self.manifests = manifests
        self.folder = folder
        self.addresses = {port: "localhost:" + free_address().split(":")[1]
                          for port in (4222, 8222, 7700, 7701, 7702, 7780, 7781, 7782, 7790, 7792, 7801,
                                       7705, 7794, 10001, 10081)}
        self.programs = {}

    def here(self, text):
        """What a container is told, for this machine."""
        for port, address in self.addresses.items():
            text = text.replace(f"0.0.0.0:{port}", address.replace("localhost", "127.0.0.1"))
            text = text.replace(f"localhost:{port}", address)
        return text.replace("/etc/muster", str(self.folder)).replace("/etc/nats", str(self.folder))

    def make_certificates(self):
        authority = Authority(self.folder, "mesh")
        self.folder_of("tls", authority, "muster-services")
        self.folder_of("client", authority, "muster-client")
        self.folder_of("stranger", authority, "somebody-else")
        policy = self.folder / "policy"
        policy.mkdir()
        (policy / "policy.yaml").write_text(
            self.manifests.get("ConfigMap", "muster-policy")["data"]["policy.yaml"])

    def folder_of(self, name, authority, called):
        certificate, key = authority.sign(called, "DNS:localhost", called=called)
        place = self.folder / name
        place.mkdir()
        for file, content in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", authority.certificate)):
            (place / file).write_text(content.read_text())

    def start_nats(self):
        text = self.here(self.manifests.get("ConfigMap", "muster-nats")["data"]["nats.conf"])
        text = text.replace('"/data"', f'"{self.folder}/nats"').replace("/tmp/nats.pid", f"{self.folder}/pid")
        configuration = self.folder / "nats.conf"
        configuration.write_text(text)
        secret = self.manifests.get("Secret", "muster-nats")["stringData"]
        self.programs["nats"] = self.start(
            [NATS_SERVERS[-1], "--config", configuration], "Server is ready",
            {"POD_NAME": "muster-nats-0", "MUSTER_NATS_PASSWORD": secret["password"]})
        self.programs["nats"].await_ready()

    def environment_of(self, container):
        """The URL's host is that of the pod: here it is localhost."""
        url = self.manifests.get("Secret", "muster-nats")["stringData"]["url"]
        user, _, _ = url.partition("@")
        environment = {one["name"]: self.here(one["value"]) for one in container["env"] if "value" in one}
        return {**environment, "MUSTER_NATS": f"{user}@{self.addresses[4222]}"}

    def start_role(self, role):
        kind, name, port = ROLES[role]
        container = self.manifests.container(kind, name)
        arguments = [self.here(argument) for argument in container["args"]
                     if not argument.startswith(("--advertise=", "--data-dir="))]
        arguments += [f"--advertise={self.addresses[port]}", f"--data-dir={self.folder / role}"]
        self.programs[role] = self.start(
            [os.environ[f"MUSTER_{role.upper()}_PROGRAM"], *arguments], READY,
            self.environment_of(container))

    def start_gateway(self):
        container = self.manifests.container("Deployment", "muster-queue-gateway")
        (self.folder / "accounts").mkdir()
        (self.folder / "accounts/accounts").write_text(f"shop:{base64.b64encode(bytes(32)).decode()}\n")
        arguments = [self.here(argument) for argument in container["args"]
                     if not argument.startswith("--data-dir=")]
        self.programs["queue-gateway"] = self.start(
            [os.environ["MUSTER_QUEUE_GATEWAY_PROGRAM"], *arguments,
             f"--data-dir={self.folder / 'queue-gateway'}"], READY, self.environment_of(container))

    def probed(self, name):
        """The status that the liveness or the readiness probe of the gateway's container gets."""
        container = self.manifests.container("Deployment", "muster-queue-gateway")
        path = container[f"{name}Probe"]["httpGet"]["path"]
        try:
            with urllib.request.urlopen(f"http://{self.addresses[10081]}{path}", timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_gateway(self):
        """What the gateway's pod of `helm test` runs."""
        [container] = self.manifests.get("Pod", "muster-queue-gateway-test")["spec"]["containers"]
        words = [re.sub(r"=[a-z0-9.-]+:10081$", f"={self.addresses[10081]}", word)
                 for word in [*container["command"], *container["args"]]]
        return subprocess.run(words, capture_output=True, text=True, timeout=chart.TIMEOUT_SECONDS,
                              env={"PATH": self.path()})

    def muster(self, *words):
        """`muster` at the initiator of a mesh without TLS."""
        return subprocess.run(["muster", *words, "--server", self.addresses[7700]], capture_output=True, text=True,
                              timeout=chart.TIMEOUT_SECONDS, env={"PATH": self.path()})

    def queue(self, *words, certificate="client"):
        """`muster queue` at the gateway's listener for operators."""
        secrets = [option for name, file in (("cert", "tls.crt"), ("key", "tls.key"), ("roots", "ca.crt"))
                   for option in (f"--tls-{name}", self.folder / certificate / file)]
        return subprocess.run(["muster", "queue", *words, "--server", self.addresses[7705], *secrets],
                              capture_output=True, text=True, timeout=chart.TIMEOUT_SECONDS,
                              env={"PATH": self.path()})

    @staticmethod
    def start(command, when_ready, environment):
        """Through env, because Program passes on this process's own environment."""
        set_here = [f"{name}={value}" for name, value in environment.items()]
        path = os.environ["PATH"] + ":/usr/sbin"  # where Debian has nats-server
        return Program(["env", f"PATH={path}", *set_here, *command], when_ready)

    def is_ready(self, role):
        """What the readiness probe of a role's container finds."""
        kind, name, _ = ROLES[role]
        port = self.manifests.container(kind, name)["readinessProbe"]["grpc"]["port"]
        # Debian's Python, which has grpcio.
        done = subprocess.run(["/usr/bin/python3", "-c", PROBE, self.addresses[port]], timeout=60)
        return done.returncode == 0

    @staticmethod
    def path():
        return f"{pathlib.Path(os.environ['MUSTER']).parent}:{os.environ['PATH']}"

    def burst(self, certificate="client"):
        command, environment = write_burst(self.manifests, self.folder)
        environment = {name: self.here(value).replace(f"{self.folder}/tls", f"{self.folder}/{certificate}")
                       for name, value in environment.items()}
        environment["MUSTER_SERVER"] = self.addresses[7700]
        return subprocess.run(command, capture_output=True, text=True, timeout=chart.TIMEOUT_SECONDS,
                              env={**environment, "PATH": self.path()})

    def run_notes(self, text):
        """Runs the first batch of the chart's notes; a kubectl of the test runs what it is told to in a pod, and has
        the secret of the client."""
        program = self.folder / "bin/kubectl"
        program.parent.mkdir()
        program.write_text('#!/bin/sh\nif [ "$3" = get ]; then exec cat "$CLIENT/$(echo "$7" | cut -d \'"\' -f 2)"; fi\n'
                           'while [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
        program.chmod(0o755)
        [before, after] = text.split("\nBATCH\n")
        batch = before[before.index(":\n\n", before.index("A first batch")) + 3:] + "\nBATCH\n"
        return subprocess.run(["sh", "-c", self.here(batch)], capture_output=True, text=True, timeout=chart.TIMEOUT_SECONDS,
                              env={"PATH": f"{program.parent}:{self.path()}", "CLIENT": str(self.folder / "client")})

    def kill(self):
        for program in self.programs.values():
            program.kill()


class MeshTest(ChartTest):
    # Debian 12's server does not know sync_interval: always. No agent takes processors here to zero.
    OF_THIS_MACHINE = ("nats.replicas=1", f"nats.syncAlways={str(len(NATS_SERVERS) > 1).lower()}",
                       "tests.transactions=5000", "tests.zeroSeconds=0")

    def setUp(self):
        missing = [name for name in ("MUSTER", *(f"MUSTER_{role.upper()}_PROGRAM" for role in ROLES))
                   if name not in os.environ]
        if missing:
            self.skipTest(f"no program is in {', '.join(missing)}")
        folder = tempfile.TemporaryDirectory(prefix="muster-chart-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def mesh_of(self, *values, files=()):
        mesh = RenderedMesh(self.render(*self.OF_THIS_MACHINE, *values, files=files), self.folder)
        self.addCleanup(mesh.kill)
        return mesh

    def assert_passes(self, done):
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, said)
        self.assertIn("5000 transactions, exact, within 120 s", said)

    def assert_first_batch(self, mesh, notes):
        first = mesh.run_notes(notes)
        self.assertEqual(first.returncode, 0, notes + first.stdout + first.stderr)
        self.assertIn("transactions", first.stdout)

    def test_a_burst_passes_on_the_mesh_of_the_defaults(self):
        mesh = self.mesh_of("metrics.enabled=true")
        mesh.start_nats()
        for role in ROLES:
            mesh.start_role(role)
            mesh.programs[role].await_ready()
        self.assert_passes(mesh.burst())
        for words in (("batch", "list"), ("job", "list")):
            self.assertEqual(mesh.muster(*words, "-o", "json").stdout, "[]\n")
        self.assert_first_batch(mesh, notes_of())
        before = mesh.muster("job", "get", "helm-test").stdout
        self.assert_passes(mesh.burst())
        self.assertEqual(mesh.muster("job", "get", "helm-test").stdout, before)
        with urllib.request.urlopen(f"http://{mesh.addresses[7790]}/metrics", timeout=10) as answer:
            shown = answer.read().decode()
        # What the ScaledObject asks for.
        for metric in ("muster_queue_backlog", "muster_queue_in_flight"):
            self.assertIn(f'{metric}{{queue="helm-test-in"}}', shown)

    def test_a_burst_passes_on_the_mesh_of_production_and_probes_and_policy_hold(self):
        mesh = self.mesh_of(files=[PRODUCTION])
        mesh.make_certificates()
        for role in ROLES:
            mesh.start_role(role)
        mesh.programs["controller"].await_line("not ready", READY_SECONDS)
        for role in ROLES:
            self.assertFalse(mesh.is_ready(role), f"{role} has no NATS, and is ready")
            self.assertIsNone(mesh.programs[role].process.poll(), f"{role} did not wait for NATS")
        mesh.start_nats()
        for role in ROLES:
            mesh.programs[role].await_ready()
            self.assertTrue(mesh.is_ready(role), f"{role} is ready, and its probe fails")
        # The controller's first heartbeat may have come before the initiator listened.
        self.assert_passes(mesh.burst())
        self.assert_first_batch(mesh, notes_of([PRODUCTION]))
        denied = mesh.burst("stranger")
        self.assertEqual(denied.returncode, 1, denied.stdout)
        self.assertIn("does not allow muster.v1.JobService/ApplyJob to cn:somebody-else", denied.stderr)
        mesh.programs["nats"].kill()
        for role in ROLES:
            mesh.programs[role].await_line("not ready", READY_SECONDS)
            self.assertFalse(mesh.is_ready(role), f"{role} has lost NATS, and is ready")

    def test_the_gateway_of_production_waits_for_nats_serves_https_and_passes_helm_test(self):
        if "MUSTER_QUEUE_GATEWAY_PROGRAM" not in os.environ:
            self.skipTest("no program is in MUSTER_QUEUE_GATEWAY_PROGRAM")
        mesh = self.mesh_of(
            "queueGateway.enabled=true", "queueGateway.accounts.existingSecret=shops",
            "queueGateway.admin.enabled=true", "policy.roles[1].name=operators",
            "policy.roles[1].members={cn:muster-client}",
            "policy.roles[1].methods={muster.v1.QueueService/List*}", files=[PRODUCTION])
        mesh.make_certificates()
        mesh.start_gateway()
        gateway = mesh.programs["queue-gateway"]
        gateway.await_line("not ready", READY_SECONDS)
        self.assertEqual((mesh.probed("liveness"), mesh.probed("readiness")), (200, 503))
        self.assertNotEqual(mesh.test_gateway().returncode, 0)
        mesh.start_nats()
        gateway.await_ready()
        self.assertEqual(mesh.probed("readiness"), 200)
        passed = mesh.test_gateway()
        self.assertEqual(passed.returncode, 0, passed.stdout + passed.stderr)
        trusting = ssl.create_default_context(cafile=mesh.folder / "client/ca.crt")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"https://{mesh.addresses[10001]}/shop/?comp=list", timeout=30,
                                   context=trusting)
        refused.exception.close()
        self.assertEqual(refused.exception.headers["x-ms-error-code"], "AuthenticationFailed")
        listed = mesh.queue("list", "--account", "shop", "-o", "json")
        self.assertEqual((listed.returncode, listed.stdout), (0, "[]\n"), listed.stderr)
        denied = mesh.queue("purge", "shop/orders")
        self.assertIn("does not allow muster.v1.QueueService/PurgeQueue to cn:muster-client", denied.stderr)


if __name__ == "__main__":
    chart.main()
