# SPDX-License-Identifier: Apache-2.0
"""A mesh of the chart on a Kubernetes whose pods really run, and a slow job for it.

tests/kubernetes/with_node starts such a cluster, or MUSTER_TEST_KUBECONFIG and MUSTER_TEST_IMAGE name one.
The handler of the job takes a given time for each item, and adds up what a test can add up itself.
"""

import collections
import contextlib
import datetime
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid

import chart

INSTALL_SECONDS = 300
# In most waits a pod is to be stopped, placed and started again, by a machine that has much to do.
PATIENCE_SECONDS = 180
POLL_SECONDS = 0.5
PROCESSORS = "app.kubernetes.io/component=processor"
ROWS_PER_ITEM = 5
COUNTRIES = ("France", "Ghana", "Norway")

# Perl is in every Debian. What it reads is this file's own, so a pattern is enough for its JSON. At the first
# attempt of the item that the second argument names, it takes more memory than the container may have, and has the
# kernel choose process 1 of the container, which is the processor.
SLOW_HANDLER = r'''
$| = 1;
while (<STDIN>) {
  my ($item) = /"item":\s*"([^"]+)"/;
  my (%units, %count);
  while (/"fields":\s*\[\s*"([A-Za-z]+)",\s*"(\d+)"\s*\]/g) { $units{$1} += $2; $count{$1}++ }
  if ($item =~ m{/$ARGV[1]$} && /"attempt":\s*1\b/) {
    open my $score, ">", "/proc/1/oom_score_adj"; print $score 1000; close $score;
    my $size = 1 << 30; my $much = "x" x $size;  # of two constants, Perl would make it as it starts
  }
  select(undef, undef, undef, $ARGV[0]);
  my $rows = join ",", map { qq({"country":"$_","units":$units{$_},"transactions":$count{$_}}) } sort keys %units;
  print qq({"item":"$item","outcome":"ok","groups":{"by_country":[$rows]},"rejected":[]}\n);
}
'''

SLOW_JOB = f"""
name: slow
input: {{format: csv, header: true, columns: {{country: country, units: units}}}}
item: {{transactions: {ROWS_PER_ITEM}}}
handler: {{command: [perl, /slow/slow.pl, "ITEM_SECONDS", "GREEDY"], deadline: 60s, version: "1"}}
groups:
- {{name: by_country, keys: [country], measures: {{units: int, transactions: int}}}}
queue: {{partitions: 1, visibility: 10s, max_attempts: 10}}
tolerate: {{rejected: 0}}
sla: {{max: 60s}}
"""

# Half a second each with one thread in each of 8 processors: long enough to break something meanwhile. Where the
# machine is so busy that it is not, a longer batch is.
ITEM_SECONDS = 0.5
ITEMS, *LONGER = 160, 480, 1440

SMALL = {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}
MOST_PROCESSORS = 8
# The agent aims at 20 s, and promises much more: where a cold start takes longer than the promise it keeps processors
# on standby, and on a busy machine one may well take longer than 20 s.
SCALE = {"max": MOST_PROCESSORS, "sla": {"max": "20m", "aim": "20s"}}
VALUES = {
    "nats": {"resources": SMALL, "fileStore": "1GB"},
    "initiator": {"resources": SMALL, "drainGraceSeconds": 10},
    "controller": {"resources": SMALL, "drainGraceSeconds": 10},
    "processor": {"resources": SMALL, "drainGraceSeconds": 10, "threads": 1, "handlerPrograms": ["/slow"],
                  "extraVolumes": [{"name": "slow", "configMap": {"name": "slow"}}],
                  "extraVolumeMounts": [{"name": "slow", "mountPath": "/slow", "readOnly": True}]},
    "pools": {"default": {"jobs": ["helm-test", "slow"], "scale": SCALE}},
    "scaler": {"mode": "agent", "agent": {"resources": SMALL, "coldStart": "5s"}},
}


def images():
    """Values that name the images that the cluster has."""
    repository, _, tag = os.environ["MUSTER_TEST_IMAGE"].rpartition(":")
    nats = os.environ.get("MUSTER_TEST_NATS_TAG")
    return {"image": {"repository": repository, "tag": tag}, **({"nats": {"image": {"tag": nats}}} if nats else {})}


def rows(items):
    return [(COUNTRIES[i % 3], i % 7 + 1) for i in range(items * ROWS_PER_ITEM)]


def csv_of(items):
    return "country,units\n" + "".join(f"{country},{units}\n" for country, units in rows(items))


def totals_of(items):
    """{country: (units, transactions)}, which muster has no part in."""
    totals = collections.defaultdict(lambda: [0, 0])
    for country, units in rows(items):
        totals[country][0] += units
        totals[country][1] += 1
    return {country: tuple(each) for country, each in totals.items()}


def tell(sentence):
    print(f"  {sentence}", file=sys.stderr, flush=True)


class PodWatch:
    """Follows the processors' pods in a `with` block: when each was first seen, and first Ready, and which of them
    had a container that the kernel killed for its memory. It hears of all that happened since it was made, however
    late."""

    def __init__(self, mesh):
        pods = f"/api/v1/namespaces/{mesh.space}/pods?labelSelector={urllib.parse.quote(PROCESSORS)}"
        listed = json.loads(mesh.must("get", "--raw", pods))
        self.made, self.ready, self.killed_for_memory = {}, {}, set()
        for pod in listed["items"]:
            self.note(pod)
        since = f"resourceVersion={listed['metadata']['resourceVersion']}"
        self.process = subprocess.Popen(mesh.kubectl_command("get", "--raw", f"{pods}&watch=true&{since}"),
                                        stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.read)

    def read(self):
        for line in self.process.stdout:
            self.note(json.loads(line)["object"])

    def note(self, pod):
        name, status, now = pod["metadata"]["name"], pod["status"], time.monotonic()
        self.made.setdefault(name, now)
        if is_ready(pod):
            self.ready.setdefault(name, now)
        for container in status.get("containerStatuses", []):
            for state in (container["state"], container["lastState"]):
                if state.get("terminated", {}).get("reason") == "OOMKilled":
                    self.killed_for_memory.add(name)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()


def is_ready(pod):
    return any((each["type"], each["status"]) == ("Ready", "True") for each in pod["status"].get("conditions", []))


class NodeMesh:
    """A release of the chart in a namespace of its own."""

    def __init__(self, values, files=()):
        self.kubeconfig = os.environ["MUSTER_TEST_KUBECONFIG"]
        self.space = f"muster-node-{uuid.uuid4().hex[:8]}"
        self.folder = tempfile.TemporaryDirectory(prefix="muster-values-")
        written = []
        for name, given in (("own", values), ("images", images())):
            written.append(pathlib.Path(self.folder.name) / f"{name}.json")
            written[-1].write_text(json.dumps(given), encoding="utf-8")
        self.options = chart.options_of(files=[*files, *written])

    def kubectl_command(self, *arguments):
        return ["kubectl", "--kubeconfig", self.kubeconfig, "--namespace", self.space, *map(str, arguments)]

    def kubectl(self, *arguments, stdin=None, timeout=60):
        return subprocess.run(self.kubectl_command(*arguments), input=stdin, capture_output=True, text=True,
                              timeout=timeout)

    def must(self, *arguments, stdin=None, timeout=60):
        """kubectl's output."""
        done = self.kubectl(*arguments, stdin=stdin, timeout=timeout)
        if done.returncode != 0:
            raise AssertionError(f"kubectl {arguments}: {done.stdout}{done.stderr}")
        return done.stdout

    def helm(self, verb, *arguments):
        return subprocess.run([chart.HELM, verb, "muster", *map(str, arguments), "--namespace", self.space,
                               "--kubeconfig", self.kubeconfig, "--timeout", f"{INSTALL_SECONDS}s"],
                              capture_output=True, text=True, timeout=INSTALL_SECONDS + 60)

    def apply_chart(self, verb, *more):
        """Installs or upgrades, and returns how long it took until all was ready."""
        begun = time.monotonic()
        done = self.helm(verb, chart.CHART, *self.options, *more, "--wait")
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr + self.diagnosis())
        return time.monotonic() - begun

    def make_namespace(self):
        """Admits only pods that the strictest of the Pod Security Standards allows."""
        self.must("create", "namespace", self.space)
        self.must("label", "namespace", self.space, "pod-security.kubernetes.io/enforce=restricted")
        self.must("create", "configmap", "slow", f"--from-literal=slow.pl={SLOW_HANDLER}")

    def remove(self):
        self.helm("uninstall", "--wait")
        self.kubectl("delete", "namespace", self.space, timeout=PATIENCE_SECONDS)
        self.folder.cleanup()

    def muster(self, *arguments, pod="muster-initiator-0", stdin=None):
        return self.kubectl("exec", "--stdin", pod, "--", "muster", *arguments, "--server", "localhost:7700",
                            stdin=stdin)

    def answer(self, *arguments):
        """The JSON object of a command, or None while the initiator cannot be reached."""
        done = self.muster(*arguments, "-o", "json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def in_initiator(self, stdin, command):
        """The output of a shell command in the initiator's pod, which reads that text."""
        return self.must("exec", "--stdin", "muster-initiator-0", "--", "sh", "-ec", command, stdin=stdin)

    def apply_job(self, item_seconds, greedy="none"):
        self.in_initiator(SLOW_JOB.replace("ITEM_SECONDS", str(item_seconds)).replace("GREEDY", str(greedy)),
                          "cat > /tmp/job.yaml; muster job apply /tmp/job.yaml --server localhost:7700")

    def submit(self, items, item_seconds, name, greedy="none"):
        """Applies the slow job and submits a batch. Returns its number, and does not wait for it. `greedy` is the
        index of an item that takes too much memory at its first attempt."""
        self.apply_job(item_seconds, greedy)
        said = self.in_initiator(csv_of(items), f"cat > /tmp/{name}.csv; muster batch submit slow "
                                 f"--input /tmp/{name}.csv --request-id {name} --server localhost:7700 -o json")
        return json.loads(said)["batch"]

    def pods(self, selector=PROCESSORS):
        listed = json.loads(self.must("get", "pods", "--selector", selector, "--output", "json"))
        return {pod["metadata"]["name"]: pod for pod in listed["items"]}

    def ready_processors(self):
        return [name for name, pod in self.pods().items()
                if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]

    def lives(self, pod):
        """Differs after the pod's container or the pod itself was started anew."""
        return self.must("get", "pod", pod, "--output",
                         "jsonpath={.metadata.uid} {.status.containerStatuses[0].restartCount}")

    def kill(self, pod):
        """Ends the pod's processes without a warning, and returns whether there was one. On a cluster that is not on
        this machine the pod is removed at once instead, and its processes get a second for their last words."""
        if "MUSTER_TEST_CLUSTER" not in os.environ:
            return self.kubectl("delete", "pod", pod, "--grace-period=0", "--force").returncode == 0
        found = self.kubectl("get", "pod", pod, "--output", "jsonpath={.metadata.uid}")
        if found.returncode != 0:
            return False
        uid, has_killed = found.stdout, False
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"pod{uid}" in (folder / "cgroup").read_text() and (folder / "comm").read_text() != "pause\n":
                    os.kill(int(folder.name), signal.SIGKILL)
                    has_killed = True
        return has_killed

    def diagnosis(self):
        """What those who look into a failure want to see first."""
        parts = [self.kubectl("get", "pods", "--output", "wide").stdout,
                 self.kubectl("get", "events", "--sort-by=.lastTimestamp").stdout[-4000:]]
        names = self.kubectl("get", "pods", "--output", "jsonpath={.items[*].metadata.name}").stdout.split()
        for name in names:
            parts.append(f"--- {name}\n" + self.kubectl("logs", name, "--tail=25").stdout)
        for words in (("doctor",), ("queue", "list"), ("scale", "status")):
            done = self.muster(*words)
            parts.append(f"--- muster {' '.join(words)}\n{done.stdout}{done.stderr}")
        return "\n".join(["", *parts])


class NodeTest(chart.ChartTest):
    mesh: NodeMesh

    def await_that(self, sentence, holds, seconds=PATIENCE_SECONDS):
        """Waits until `holds` returns something true, and returns that."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = holds()
            if found:
                return found
            time.sleep(POLL_SECONDS)
        return self.fail(f"not within {seconds} s: {sentence}{self.mesh.diagnosis()}")

    def await_counted(self, batch, items):
        """Waits until so many items of the batch are counted."""
        def counted():
            found = self.mesh.answer("batch", "get", batch)
            known = found and found["items_counted"] is not None  # while the controller is reached
            return found if known and found["items_counted"] >= items else None
        return self.await_that(f"batch {batch} has {items} items counted", counted)

    def disturb(self, name, act, is_quick=False):
        """Calls `act` while a batch is in progress, and returns the batch and how many items it has. `act` returns
        False where it found nothing to disturb; a quick one is over before the batch is."""
        for items in (ITEMS, *LONGER):
            batch = self.mesh.submit(items, ITEM_SECONDS, f"{name}-{items}")
            if self.await_counted(batch, 5)["items_counted"] < items and act() and (
                    not is_quick or self.await_counted(batch, 0)["items_counted"] < items):
                return batch, items
            tell(f"the batch of {items} items was over before the disturbance")
            self.assert_exact(batch, items)
        return self.fail("each batch was over before the disturbance")

    def await_nobody(self):
        self.await_that("the agent has let all processors go", lambda: not self.mesh.pods())

    def assert_exact(self, batch, items):
        """The batch becomes complete, with the sums of its input, and its receipt says so."""
        def complete():
            found = self.mesh.answer("batch", "get", batch)
            return found if found and "completed" in found else None
        done = self.await_that(f"batch {batch} is complete", complete)
        self.assertEqual((done["items_counted"], done["items_dead"], done["aggregated"], done["rejected"],
                          done["dead_lettered"]), (items, 0, items * ROWS_PER_ITEM, 0, 0), done)
        report = self.await_that("the report answers", lambda: self.ok("report", batch, "--group", "by_country",
                                                                       "-o", "csv"))
        counted = {country: (int(units), int(count)) for country, units, count in
                   (line.split(",") for line in report.splitlines()[1:])}
        self.assertEqual(counted, totals_of(items))
        receipt = self.await_that("the receipt is there", lambda: self.ok("batch", "receipt", batch))
        text, _, checksum = receipt.rpartition("checksum ")
        for line in (f"transactions {items * ROWS_PER_ITEM}", f"aggregated {items * ROWS_PER_ITEM}", "rejected 0",
                     "dead_lettered 0"):
            self.assertIn(line, text.splitlines())
        self.assertEqual(hashlib.sha256(text.encode()).hexdigest(), checksum.strip())
        tell(f"batch {batch}: {items} items exact, {done['attempts']} attempts, "
             f"{done['duplicates_dropped']} duplicates dropped, {took(done):.1f} s")
        return done

    def ok(self, *arguments):
        done = self.mesh.muster(*arguments)
        return done.stdout if done.returncode == 0 else None


def took(batch):
    begun, completed = (datetime.datetime.fromisoformat(batch[key].replace("Z", "+00:00"))
                        for key in ("begun", "completed"))
    return (completed - begun).total_seconds()
