#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart on a Kubernetes whose pods really run: installed, tested by its own test, scaled from zero by
the agent, and disturbed in mid-batch. Every batch must end with exact totals and a receipt.

    tests/kubernetes/with_node python3 tests/helm/node_test.py
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import chart
import node
from node import ITEM_SECONDS, ITEMS, PATIENCE_SECONDS, NodeMesh, NodeTest, PodWatch, tell

sys.path.insert(0, str(chart.ROOT / "tests/integration"))
from nats_secrets import Authority  # noqa: E402

MESH = None
FIRST_BATCH_SECONDS = None  # from the install until it was complete: how busy the machine is
OUTAGE_SECONDS = 60


def setUpModule():
    if "MUSTER_TEST_KUBECONFIG" not in os.environ or "MUSTER_TEST_IMAGE" not in os.environ:
        raise unittest.SkipTest("MUSTER_TEST_KUBECONFIG and MUSTER_TEST_IMAGE name no cluster with an image")
    global MESH, FIRST_BATCH_SECONDS
    MESH = NodeMesh(node.VALUES)
    unittest.addModuleCleanup(MESH.remove)
    MESH.make_namespace()
    begun = time.monotonic()
    tell(f"helm install --wait took {MESH.apply_chart('install'):.1f} s")
    # A processor that has no job yet counts as one that is starting, and no agent takes that back.
    first = MESH.submit(1, ITEM_SECONDS, "first")
    while "completed" not in (MESH.answer("batch", "get", first) or {}):
        if time.monotonic() - begun > PATIENCE_SECONDS:
            raise AssertionError("there is no first batch" + MESH.diagnosis())
    FIRST_BATCH_SECONDS = time.monotonic() - begun
    tell(f"the first batch was complete {FIRST_BATCH_SECONDS:.1f} s after the install began")


class InstalledTest(NodeTest):
    def setUp(self):
        self.mesh = MESH

    def test_the_charts_own_test_passes_from_zero_and_leaves_nothing(self):
        self.await_nobody()
        begun = time.monotonic()
        done = self.mesh.helm("test", "--logs")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.mesh.diagnosis())
        self.assertIn("20000 transactions, exact, within 120 s", done.stdout)
        for row in ("processors before", "transactions", "receipt", "complete", "p95 of item latency", "back to zero"):
            self.assertRegex(done.stdout, f"{row} .* kept")
        tell(f"helm test took {time.monotonic() - begun:.1f} s")
        for line in dict.fromkeys(line for line in done.stdout.splitlines() if line.endswith(" kept")):
            tell(line)
        self.assertEqual(self.mesh.pods(), {})
        for words in (("batch", "list"), ("job", "list")):
            self.assertNotIn("helm-test", [each["job"] for each in self.mesh.answer(*words)])

    def test_the_charts_own_test_fails_with_the_promise_that_was_not_kept(self):
        self.addCleanup(self.mesh.apply_chart, "upgrade")
        self.mesh.apply_chart("upgrade", "--set", "tests.slaSeconds=1")
        self.await_nobody()
        done = self.mesh.helm("test", "--logs")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        # It waits for 30 s more, which a burst may need.
        self.assertRegex(done.stdout, r"FAILED: (complete: \S+ s, and 1 s are promised"
                                      r"|not complete 30 s after the promised 1 s: \{)")
        self.assertNotIn("helm-test", [each["job"] for each in self.mesh.answer("job", "list")])

    def test_a_burst_from_zero_gets_real_pods_and_they_go_again(self):
        self.await_nobody()
        begun = time.monotonic()
        with PodWatch(self.mesh) as watch:
            batch = self.mesh.submit(ITEMS, ITEM_SECONDS, "burst")
            submitted = time.monotonic()
            self.await_counted(batch, 1)
            counted = time.monotonic()
            self.assert_exact(batch, ITEMS)
        self.assertGreater(len(watch.made), 1, "the agent never scaled out")
        tell(f"submit took {submitted - begun:.1f} s; since it ended: first pod made "
             f"{min(watch.made.values()) - submitted:.1f} s, first ready {min(watch.ready.values()) - submitted:.1f} s, "
             f"last of {len(watch.ready)} ready {max(watch.ready.values()) - submitted:.1f} s, "
             f"first item counted {counted - submitted:.1f} s")
        left = time.monotonic()
        self.await_nobody()
        tell(f"back to zero {time.monotonic() - left:.1f} s after the batch was complete")


class DisturbedTest(NodeTest):
    """Something breaks while a batch is in progress."""

    def setUp(self):
        self.mesh = MESH
        self.name = self._testMethodName.replace("_", "-")[5:45].strip("-")

    def with_a_ready_processor(self, act):
        """Calls `act` with one, and fails as it does; False: they have gone again."""
        return any(act(each) for each in self.mesh.ready_processors()[:1])

    def test_a_rolling_upgrade_of_the_processors_loses_nothing(self):
        before = set()

        def upgrade():
            before.update(self.mesh.pods())
            took = self.mesh.apply_chart("upgrade", "--set", f"pools.default.podAnnotations.release={self.name}")
            tell(f"helm upgrade --wait took {took:.1f} s")
            return True
        batch, items = self.disturb(self.name, upgrade)
        done = self.assert_exact(batch, items)
        self.await_that("the old processors are gone", lambda: not before & set(self.mesh.pods()))
        # Those that leave finish what they have in hand and give the rest back.
        self.assertEqual((done["attempts"], done["duplicates_dropped"]), (items, 0))

    def test_a_processor_that_is_deleted_finishes_its_work_first(self):
        batch, items = self.disturb(self.name, lambda: self.with_a_ready_processor(
            lambda pod: self.mesh.kubectl("delete", "pod", pod, "--wait=false").returncode == 0), is_quick=True)
        done = self.assert_exact(batch, items)
        self.assertEqual((done["attempts"], done["duplicates_dropped"]), (items, 0))

    def test_a_processor_that_is_killed_loses_nothing(self):
        self.assert_exact(*self.disturb(self.name, lambda: self.with_a_ready_processor(self.mesh.kill), is_quick=True))

    def test_nats_that_is_killed_comes_back_with_all_it_had(self):
        before = self.mesh.lives("muster-nats-0")
        self.assert_exact(*self.disturb(self.name, lambda: self.mesh.kill("muster-nats-0"), is_quick=True))
        self.assertNotEqual(self.mesh.lives("muster-nats-0"), before)

    def test_the_controller_and_the_initiator_that_are_killed_come_back_with_all_they_had(self):
        both = ("muster-controller-0", "muster-initiator-0")
        before = [self.mesh.lives(pod) for pod in both]
        self.assert_exact(*self.disturb(self.name, lambda: all([self.mesh.kill(pod) for pod in both])))
        for pod, life in zip(both, before):
            self.assertNotEqual(self.mesh.lives(pod), life)


class ReleaseTest(NodeTest):
    """The whole mesh is replaced while a batch is in progress: each of its own services starts anew."""

    SERVICES = ("initiator", "controller", "processor", "scaler.agent")

    def setUp(self):
        self.mesh = MESH

    def own_pods(self):
        """Those of muster itself, without NATS."""
        found = self.mesh.pods("app.kubernetes.io/instance=muster,app.kubernetes.io/component in "
                               "(initiator,controller,processor,scaling-agent)")
        return {name: pod for name, pod in found.items() if "deletionTimestamp" not in pod["metadata"]}

    def assert_replaced(self, before):
        after = self.own_pods()
        for name in set(before) & set(after):
            self.assertNotEqual(after[name]["metadata"]["uid"], before[name]["metadata"]["uid"], name)
        self.assertIn("muster-initiator-0", after)
        return after

    def test_a_rollback_in_mid_batch_loses_nothing(self):
        changed = [word for service in self.SERVICES for word in ("--set", f"{service}.podAnnotations.release=next")]
        self.mesh.apply_chart("upgrade", *changed)
        before = {}

        def roll_back():
            before.update(self.own_pods())
            begun = time.monotonic()
            done = self.mesh.helm("rollback", "--wait")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.mesh.diagnosis())
            tell(f"helm rollback --wait took {time.monotonic() - begun:.1f} s")
            return True
        self.assert_exact(*self.disturb("rollback", roll_back))
        for name, pod in self.assert_replaced(before).items():
            # It may have one of an earlier upgrade.
            self.assertNotEqual(pod["metadata"].get("annotations", {}).get("release"), "next", name)

    @unittest.skipUnless("MUSTER_TEST_NEXT_TAG" in os.environ, "MUSTER_TEST_NEXT_TAG names no second image")
    def test_an_upgrade_to_a_new_image_in_mid_batch_loses_nothing(self):
        image = f"image.tag={os.environ['MUSTER_TEST_NEXT_TAG']}"
        self.addCleanup(self.mesh.apply_chart, "upgrade")
        before = {}

        def upgrade():
            before.update(self.own_pods())
            tell(f"helm upgrade --wait took {self.mesh.apply_chart('upgrade', '--set', image):.1f} s")
            return True
        self.assert_exact(*self.disturb("image", upgrade))
        for name, pod in self.assert_replaced(before).items():
            self.assertEqual(pod["spec"]["containers"][0]["image"].rpartition(":")[2], os.environ["MUSTER_TEST_NEXT_TAG"],
                             name)


class MemoryTest(NodeTest):
    def setUp(self):
        self.mesh = MESH

    def test_a_processor_that_the_kernel_kills_for_its_memory_loses_nothing(self):
        # A processor that works goes on with the program that it has started, and its arguments, for a moment.
        self.await_nobody()
        with PodWatch(self.mesh) as watch:
            batch = self.mesh.submit(ITEMS, ITEM_SECONDS, "memory", greedy=ITEMS // 4)
            done = self.assert_exact(batch, ITEMS)
            self.await_that("a processor was killed for its memory", lambda: watch.killed_for_memory)
        self.assertGreater(done["attempts"], ITEMS)


class AgentTest(NodeTest):
    def setUp(self):
        self.mesh = MESH

    def test_an_agent_that_is_killed_in_mid_action_goes_on_after_it(self):
        self.await_nobody()
        with PodWatch(self.mesh) as watch:
            batch = self.mesh.submit(ITEMS, ITEM_SECONDS, "agent")
            self.await_that("the agent makes pods", lambda: watch.made)
        before = self.mesh.lives("muster-scaling-agent-0")
        self.mesh.kill("muster-scaling-agent-0")
        self.assert_exact(batch, ITEMS)
        self.assertNotEqual(self.mesh.lives("muster-scaling-agent-0"), before)
        self.await_nobody()


@unittest.skipUnless("MUSTER_TEST_CLUSTER" in os.environ, "the API server of this cluster is not ours to stop")
class OutageTest(NodeTest):
    """The API server is away for a while."""

    def setUp(self):
        self.mesh = MESH

    def api(self, verb):
        subprocess.run([os.environ["MUSTER_TEST_CLUSTER"], "api", verb], check=True, timeout=PATIENCE_SECONDS)

    def outage(self):
        self.api("stop")
        # How long it lasts is the test's choice.
        time.sleep(OUTAGE_SECONDS)
        self.api("start")

    def test_work_goes_on_meanwhile(self):
        items = 8 * OUTAGE_SECONDS  # what 8 processors with a second for each are busy with all the time
        batch = self.mesh.submit(items, 1, "outage")
        before = self.await_counted(batch, 1)["items_counted"]
        self.outage()
        after = self.await_counted(batch, before)["items_counted"]
        tell(f"{after - before} of {items} items were counted in {OUTAGE_SECONDS} s without an API server")
        self.assertGreater(after - before, OUTAGE_SECONDS // 2)
        self.assert_exact(batch, items)
        self.await_nobody()

    def test_work_that_comes_meanwhile_gets_pods_when_it_is_back(self):
        self.mesh.apply_job(ITEM_SECONDS)
        self.await_nobody()
        # kubectl cannot reach the pod during the outage.
        self.mesh.in_initiator(node.csv_of(ITEMS), f"""cat > /tmp/later.csv
            (sleep {OUTAGE_SECONDS // 4}; muster batch submit slow --input /tmp/later.csv --request-id later \\
             --server localhost:7700 -o json) > /tmp/later.json 2>&1 < /dev/null &""")
        self.outage()
        back, since = time.monotonic(), {}

        def noted(what, holds):
            found = self.await_that(what, holds)
            since[what] = f"{what} {time.monotonic() - back:.1f} s"
            return found
        # They may have come, worked and gone before a look.
        with PodWatch(self.mesh) as watch:
            noted("the agent has asked for pods", lambda: watch.made or int(self.mesh.must(
                "get", "deployment", "muster-processor-default", "--output", "jsonpath={.spec.replicas}")) > 0)
            noted("pods are made", lambda: watch.made)
            noted("one is ready", lambda: watch.ready)
        batch = json.loads(self.await_that(
            "the batch was submitted", lambda: self.mesh.in_initiator("", "cat /tmp/later.json")))["batch"]
        noted("an item is counted", lambda: (self.mesh.answer("batch", "get", batch) or {}).get("items_counted"))
        tell(f"work came {OUTAGE_SECONDS - OUTAGE_SECONDS // 4} s before the outage ended; since then: "
             + ", ".join(since.values()))
        self.assert_exact(batch, ITEMS)


class DrainedTest(NodeTest):
    def setUp(self):
        self.mesh = MESH

    @unittest.skipUnless("MUSTER_TEST_CLUSTER" in os.environ, "the nodes of this cluster are not ours to drain")
    def test_a_node_that_is_drained_takes_the_whole_mesh_along_and_brings_it_back(self):
        batch = self.mesh.submit(ITEMS, ITEM_SECONDS, "drain")
        self.await_counted(batch, 5)
        self.addCleanup(self.mesh.kubectl, "uncordon", "node")
        self.mesh.must("drain", "node", "--delete-emptydir-data", "--timeout=150s", timeout=180)
        self.assertEqual([pod for pod in self.mesh.pods("app.kubernetes.io/instance=muster").values()
                          if pod["status"]["phase"] == "Running"], [])
        self.mesh.must("uncordon", "node")
        self.assert_exact(batch, ITEMS)


def make_certificates(mesh, authority, expires=None, verb="create"):
    """The three secrets with certificates of a mesh; those of the services and of the client expire then."""
    domain = f"{mesh.space}.svc.cluster.local"
    services = ["localhost", f"muster.{domain}", f"*.{mesh.space}.pod.cluster.local",
                *(f"*.muster-{service}.{domain}" for service in ("initiator", "controller", "scaling-agent"))]
    for secret, called, names in (("services", "muster-services", services),
                                  ("nats", "muster-nats", [f"*.muster-nats.{domain}"]),
                                  ("client", "muster-client", ["client"])):
        certificate, key = authority.sign(secret, ",".join(f"DNS:{name}" for name in names), called=called,
                                          expires=None if secret == "nats" else expires)
        made = mesh.must("create", "secret", "generic", secret, f"--from-file=tls.crt={certificate}",
                         f"--from-file=tls.key={key}", f"--from-file=ca.crt={authority.certificate}", "--dry-run=client",
                         "--output=yaml")
        mesh.must(verb, "--filename=-", stdin=made)


class CertificateTest(NodeTest):
    VALUES = {**node.VALUES, "tls": {"enabled": True, "existingSecret": "services", "existingNatsSecret": "nats",
                                     "existingClientSecret": "client"}}
    ITEM_SECONDS, UNTIL_READ_SECONDS = 2, 75

    def test_certificates_that_expire_in_mid_batch_and_are_renewed_lose_nothing(self):
        self.mesh = NodeMesh(self.VALUES)
        self.addCleanup(self.mesh.remove)
        self.mesh.make_namespace()
        folder = tempfile.TemporaryDirectory(prefix="muster-certificates-")
        self.addCleanup(folder.cleanup)
        authority = Authority(pathlib.Path(folder.name), "mesh")
        # Installed and submitted by then, and with work for longer than it takes until renewed ones are read.
        expires = time.time() + 75 + 2 * FIRST_BATCH_SECONDS
        make_certificates(self.mesh, authority, expires)
        self.mesh.apply_chart("install")
        busy = expires - time.time() + self.UNTIL_READ_SECONDS + FIRST_BATCH_SECONDS
        items = int(busy * node.MOST_PROCESSORS / self.ITEM_SECONDS)
        batch = self.mesh.submit(items, self.ITEM_SECONDS, "expiry")
        self.assertLess(self.await_counted(batch, 5)["items_counted"], items)
        self.assertLess(time.time(), expires, "the certificates had expired before the batch began")
        time.sleep(max(0, expires + 1 - time.time()))  # they expire by the clock
        refused = self.mesh.muster("batch", "get", batch)
        self.assertNotEqual(refused.returncode, 0, refused.stdout)
        make_certificates(self.mesh, authority, verb="replace")
        renewed = time.monotonic()
        found = self.await_that("a call is answered", lambda: self.mesh.answer("batch", "get", batch))
        tell(f"calls were answered {time.monotonic() - renewed:.1f} s after certificates were renewed, which had expired")
        self.assertLess(found["items_counted"] or 0, items, "the batch was over before the certificates were renewed")
        self.assert_exact(batch, items)


class MissingTest(NodeTest):
    """What the values name is not there when the chart is installed."""

    def install(self, values):
        self.mesh = NodeMesh(values)
        self.addCleanup(self.mesh.remove)
        self.mesh.make_namespace()
        done = self.mesh.helm("install", chart.CHART, *self.mesh.options)
        self.assertEqual(done.returncode, 0, done.stderr)

    def await_event(self, *texts):
        """Waits until an event of the namespace has all of these."""
        def told():
            events = self.mesh.must("get", "events", "--output",
                                    'jsonpath={range .items[*]}{.reason} {.message}{"\\n"}{end}')
            return next((line for line in events.splitlines() if all(text in line for text in texts)), None)
        return self.await_that(f"an event has {texts}", told)

    def assert_no_pod_was_started_again(self):
        for name, pod in self.mesh.pods("app.kubernetes.io/instance=muster").items():
            for container in pod["status"].get("containerStatuses", []):
                self.assertEqual(container["restartCount"], 0, name + self.mesh.diagnosis())

    def test_secrets_that_come_after_the_install_are_named_and_waited_for(self):
        self.install(CertificateTest.VALUES)
        tell(self.await_event("FailedMount", 'secret "services" not found'))
        folder = tempfile.TemporaryDirectory(prefix="muster-certificates-")
        self.addCleanup(folder.cleanup)
        make_certificates(self.mesh, Authority(pathlib.Path(folder.name), "mesh"))
        tell(f"all was ready {self.mesh.apply_chart('upgrade'):.1f} s after the secrets came")
        self.assert_no_pod_was_started_again()
        self.assert_exact(self.mesh.submit(ITEMS, ITEM_SECONDS, "secrets"), ITEMS)

    def test_an_image_that_cannot_be_pulled_is_named_and_holds_up_its_pool_alone(self):
        image = {"repository": "registry.invalid/handlers", "tag": "1"}
        other = {"jobs": ["other"], "image": image, "scale": {**node.SCALE, "min": 1}}
        self.install({**node.VALUES, "pools": {**node.VALUES["pools"], "other": other}})
        tell(self.await_event("Failed", "registry.invalid/handlers:1"))
        self.assert_exact(self.mesh.submit(ITEMS, ITEM_SECONDS, "image"), ITEMS)

        def told():
            said = self.mesh.muster("doctor").stdout.splitlines()
            return next((line for line in said if "registry.invalid/handlers:1" in line), None)
        tell(self.await_that("the doctor names the image", told))
        self.assert_no_pod_was_started_again()


class FullVolumeTest(NodeTest):
    VALUES = {**node.VALUES, "initiator": {**node.VALUES["initiator"],
                                           "persistence": {"size": "64Mi", "storageClass": "small"}}}

    @unittest.skipUnless("MUSTER_TEST_CLUSTER" in os.environ, "this cluster may have no volume of 64 MiB that gets full")
    def test_a_volume_of_the_initiator_that_is_full_in_mid_batch_loses_nothing(self):
        self.mesh = NodeMesh(self.VALUES)
        self.addCleanup(self.mesh.remove)
        self.mesh.make_namespace()
        self.mesh.apply_chart("install")
        batch = self.mesh.submit(ITEMS, ITEM_SECONDS, "full")
        self.await_counted(batch, 5)
        self.mesh.in_initiator("", "cat /dev/zero > /var/lib/muster/ballast 2> /dev/null || true")
        # More than the ledger has set space aside for, and may hold itself.
        self.mesh.in_initiator(node.csv_of(100_000), "cat > /tmp/much.csv")
        refused = self.mesh.muster("batch", "submit", "slow", "--input", "/tmp/much.csv", "--new", "--quiet")
        self.assertEqual(refused.returncode, 5, refused.stdout + refused.stderr)
        self.assertIn("No space left on device", refused.stderr)
        subprocess.run([os.environ["MUSTER_TEST_CLUSTER"], "grow", "128m"], check=True, timeout=PATIENCE_SECONDS)
        self.assert_exact(batch, ITEMS)
        again = self.mesh.submit(ITEMS, ITEM_SECONDS, "room")
        self.assert_exact(again, ITEMS)


class ProductionTest(NodeTest):
    """values-production.yaml as it is, but with secrets instead of cert-manager, and smaller."""

    SMALL = {"resources": node.SMALL, "persistence": {"size": "10Gi"}}
    VALUES = {
        "tls": {"certManager": {"enabled": False}, "existingSecret": "services", "existingNatsSecret": "nats",
                "existingClientSecret": "client"},
        "metrics": {"serviceMonitor": {"enabled": False}, "prometheusRule": {"enabled": False}},
        "nats": {**SMALL, "fileStore": "1GB"}, "initiator": SMALL, "controller": SMALL,
        "processor": {"resources": node.SMALL}, "scaler": {"agent": {"resources": node.SMALL, "coldStart": "5s"}},
    }

    def setUp(self):
        self.mesh = NodeMesh(self.VALUES, [chart.PRODUCTION])
        self.addCleanup(self.mesh.remove)
        self.mesh.make_namespace()
        folder = tempfile.TemporaryDirectory(prefix="muster-certificates-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def require_synced_writes(self):
        """nats.syncAlways is for NATS 2.10 and later; the server of the image is this machine's."""
        if "MUSTER_TEST_NATS_TAG" not in os.environ:
            return
        server = shutil.which(os.environ.get("MUSTER_NATS_SERVERS", "nats-server").split(":")[-1],
                              path=os.environ["PATH"] + ":/usr/sbin")
        version = subprocess.run([server, "--version"], capture_output=True, text=True, check=True).stdout
        if [int(part) for part in version.split("v")[-1].split(".")[:2]] < [2, 10]:
            self.skipTest(f"{version.strip()} cannot sync each write; name a newer one in MUSTER_NATS_SERVERS")

    def test_the_charts_own_test_passes_with_tls_a_policy_and_three_nats_servers(self):
        self.require_synced_writes()
        make_certificates(self.mesh, Authority(self.folder, "mesh"))
        tell(f"helm install --wait took {self.mesh.apply_chart('install'):.1f} s")
        done = self.mesh.helm("test", "--logs")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.mesh.diagnosis())
        self.assertIn("20000 transactions, exact, within 120 s", done.stdout)


def load_tests(loader, _, __):
    """The plain cases first: what they need, the others need, too."""
    return unittest.TestSuite(loader.loadTestsFromTestCase(case)
                              for case in (InstalledTest, DisturbedTest, ReleaseTest, MemoryTest, AgentTest, OutageTest,
                                           DrainedTest, MissingTest, FullVolumeTest, CertificateTest, ProductionTest))


if __name__ == "__main__":
    chart.main()
