# SPDX-License-Identifier: Apache-2.0
"""The metrics of a mesh of real programs: they are what the batch's own report says, they are complete, and a
Prometheus can read them."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time
import unittest
import unittest.mock
import urllib.request

import harness
from harness import ROOT, MusterTest
from mesh import LOOPBACK, Mesh, READY_SECONDS, Program, free_address, free_ports
from mesh_case import Gate, MeshTest

# A line that says "dead" gives its item up; one that says "bad" is rejected.
PROGRAM = """
import collections, json, sys
for line in sys.stdin:
    item = json.loads(line)
    sums, rejected = collections.Counter(), []
    texts = [(t["line"], t["fields"][0]) for t in item["transactions"]]
    if any(text == "dead" for _, text in texts):
        print(json.dumps({"item": item["item"], "outcome": "dead", "why": "it is poison"}), flush=True)
        continue
    for number, text in texts:
        if text == "bad":
            rejected.append({"line": number, "reason": "it is bad"})
        else:
            sums[text] += 1
    rows = [{"text": text, "lines": lines} for text, lines in sums.items()]
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups": {"by_text": rows},
                      "rejected": rejected}), flush=True)
"""
JOB = """
name: words
input: {{format: lines}}
item: {{transactions: 2}}
handler: {{command: [python3, {program}]}}
sla: {{max: 1ms}}
groups:
  - {{name: by_text, keys: [text], measures: {{lines: int}}}}
"""
ORDERED = """
name: payments
input: {{format: csv, columns: [text]}}
item: {{transactions: 2}}
order_by: text
handler: {{command: [python3, {program}]}}
queue: {{partitions: 4}}
groups:
  - {{name: by_text, keys: [text], measures: {{lines: int}}}}
"""
RULES = """
targets:
  words: {kind: dry-run, name: words, queues: [words-in], sla: {max: 300s}, max: 4}
"""
# Five items: the third is given up, and one transaction of the second is rejected.
LINES = ["a", "b", "bad", "a", "dead", "b", "a", "a", "b", "c"]


def read_catalogue():
    """The metrics of each service of a mesh, by name: their type. A unit test holds the page to the
    catalogue; tests/queue_gateway/operations_test.py scrapes a queue gateway."""
    services = {"initiator": {}, "controller": {}, "processor": {}, "scaling agent": {},
                "queue gateway": {}}
    for line in (ROOT / "docs/operations/metrics.md").read_text().splitlines():
        if not line.startswith("| `"):
            continue
        name, kind, _, _, where, _ = [cell.strip() for cell in line.strip("|").split("|")]
        for service in services if where == "every" else where.split(", "):
            services[service][name.strip("`")] = kind
    del services["queue gateway"]
    return services


class Page:
    """What one scrape has answered."""

    def __init__(self, address):
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=READY_SECONDS) as answer:
            self.text = answer.read().decode()

    def types(self):
        return dict(re.findall(r"^# TYPE (\S+) (\S+)$", self.text, re.MULTILINE))

    def value(self, name, **labels):
        """The sum over all series of this name with these labels; None: there is none."""
        found = [float(value) for shown, value in re.findall(
            rf"^{name}(?:\{{(.*)\}})? (\S+)$", self.text, re.MULTILINE)
                 if all(f'{label}="{text}"' in shown for label, text in labels.items())]
        return sum(found) if found else None


class MeasuredMesh(Mesh):
    """A mesh whose services show their metrics."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.metrics = {}

    def start_role(self, role, address=None, *more, data=None):
        self.metrics.setdefault(role, []).append(free_address())
        return super().start_role(role, address, "--metrics", self.metrics[role][-1], *more, data=data)

    def start_agent(self, rules):
        self.metrics["scaling agent"] = [free_address()]
        return self.add(Program(
            [os.environ["MUSTER_SCALING_AGENT_PROGRAM"], "--rules", rules, "--actuator", "dry-run",
             "--listen", free_address(), *self.nats_arguments(), "--data-dir", self.folder / "agent",
             "--metrics", self.metrics["scaling agent"][0]], "msg=ready"))


class MetricsTest(MeshTest):
    def make_mesh(self):
        return MeasuredMesh(self.folder, self.nats_server, self.nats_servers)

    def pages(self, role):
        return [Page(address) for address in self.mesh.metrics[role]]

    def total(self, role, name, **labels):
        return sum(page.value(name, **labels) or 0 for page in self.pages(role))

    def await_total(self, expected, role, name, **labels):
        """What a service does beside the batch may end after it."""
        end = time.monotonic() + READY_SECONDS
        while self.total(role, name, **labels) != expected:
            self.assertLess(time.monotonic(), end,
                            f"{name} {labels}: {self.total(role, name, **labels)}, not {expected}")
            time.sleep(0.05)

    def await_value(self, expected, processor, name, **labels):
        address = self.mesh.metrics["processor"][processor]
        end = time.monotonic() + READY_SECONDS
        while (shown := Page(address).value(name, **labels)) != expected:
            self.assertLess(time.monotonic(), end, f"{name} {labels}: {shown}, not {expected}")
            time.sleep(0.05)

    def work(self):
        """Works off a batch, and returns its JSON object."""
        program = self.write("program.py", PROGRAM)
        self.answer("job", "apply", self.write("words.yaml", JOB.format(program=program)))
        data = self.write("in.txt", "\n".join(LINES) + "\n")
        done = self.muster(*self.submit_arguments("words", data))
        result = json.loads(done.stdout)
        self.assertTrue(result["complete"], done.stderr)
        return result

    def test_they_are_what_the_report_of_the_batch_says(self):
        result = self.work()
        self.assertEqual((result["aggregated"], result["rejected"], result["dead_lettered"]), (7, 1, 2))
        for outcome in ("aggregated", "rejected", "dead_lettered"):
            self.await_total(result[outcome], "controller", "muster_transactions_total",
                             queue="words-in", outcome=outcome)
        self.await_total(4, "controller", "muster_items_total", queue="words-in", outcome="aggregated")
        self.await_total(1, "controller", "muster_items_total", outcome="dead_lettered")
        self.await_total(5, "controller", "muster_item_latency_seconds_count", queue="words-in")
        latencies = self.total("controller", "muster_item_latency_seconds_sum", queue="words-in")
        self.assertLess(0, latencies)
        self.assertLess(latencies, 5 * READY_SECONDS)
        self.assertLess(0, self.total("controller", "muster_sqlite_commit_seconds_count"))
        self.await_total(1, "processor", "muster_rejected_total", queue="words-in", reason="handler")
        self.await_total(1, "processor", "muster_dead_letters_total", queue="words-in", reason="refused")
        self.assertLess(0, self.total("processor", "muster_worker_time_seconds_total", pool="words",
                                      state="busy"))
        self.await_total(1, "initiator", "muster_queue_poison", queue="words-in")
        for name in ("backlog", "in_flight"):
            self.await_total(0, "initiator", f"muster_queue_{name}", queue="words-in")
        self.assertEqual(self.total("initiator", "muster_sla_target_seconds", queue="words-in"), 0.001)
        self.await_total(1, "initiator", "muster_sla_violations_total", queue="words-in")
        self.assertLess(0, self.total("initiator", "muster_storage_transactions_total",
                                      queue="words-in", operation="put", useful="true"))
        self.assertLess(0, self.total("initiator", "muster_rocksdb_sync_seconds_count", store="ledger"))
        self.await_total(1, "initiator", "rpc_server_call_duration_seconds_count",
                         method="muster.v1.BatchService/Submit", code="OK")

    def test_an_item_that_is_redriven_counts_once_more(self):
        self.work()
        before = self.total("controller", "muster_items_total")
        self.answer("queue", "redrive", "local/words-in-0")
        self.await_total(before + 1, "controller", "muster_items_total")
        self.await_total(2, "controller", "muster_items_total", outcome="dead_lettered")
        self.assertEqual(self.total("controller", "muster_duplicates_total"), 0)

    def test_the_owners_of_partitions_are_shown_and_who_takes_over_from_the_dead(self):
        program = self.write("program.py", PROGRAM)
        self.answer("job", "apply", self.write("payments.yaml", ORDERED.format(program=program)))
        group = "order/payments-in-0/4"
        for processor in (0, 1):
            self.await_value(2, processor, "muster_partitions_owned", group=group)
            self.await_value(0, processor, "muster_partitions_unowned", group=group)
        self.await_total(4, "processor", "muster_partition_changes_total", group=group, change="claimed")
        self.assertEqual(self.total("processor", "muster_partition_changes_total", change="lost"), 0)
        self.mesh.processors[0].kill()
        self.await_value(4, 1, "muster_partitions_owned", group=group)
        self.await_value(2, 1, "muster_partition_changes_total", group=group, change="taken_over")
        self.await_value(0, 1, "muster_partitions_unowned", group=group)
        for metric in ("cycles", "requests"):
            self.assertLess(0, Page(self.mesh.metrics["processor"][1]).value(
                f"muster_partition_{metric}_total", group=group, outcome="ok"))
        self.await_total(1, "controller", "muster_partitions_owned", group="controller/local")

    def test_each_service_shows_its_part_of_the_catalogue_and_prometheus_reads_it(self):
        self.mesh.start_agent(self.write("rules.yaml", RULES)).await_ready()
        self.work()
        self.await_total(300, "scaling agent", "muster_sla_target_seconds", queue="words-in")
        for service, metrics in read_catalogue().items():
            for page in self.pages(service):
                self.assertEqual(page.types(), metrics, service)
                self.check(page)
        self.await_total(2, "scaling agent", "muster_workers", pool="words", state="ready")
        [agent] = self.pages("scaling agent")
        self.assertIsNotNone(agent.value("muster_scale_desired", pool="words"))
        self.assertLess(0, agent.value("muster_scale_decisions_total", pool="words"))

    def check(self, page):
        if shutil.which("promtool") is None:
            print("promtool is not installed: no Prometheus has read the page")
            return
        done = subprocess.run(["promtool", "check", "metrics"], input=page.text, text=True,
                              capture_output=True, timeout=READY_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def test_without_a_nats_server_they_say_so_and_health_is_as_before(self):
        self.work()
        self.mesh.nats.kill()
        self.mesh.initiator.await_line('msg="not ready"')
        [page] = self.pages("initiator")
        self.assertIsNone(page.value("muster_queue_poison"))
        self.assertLess(0, page.value("muster_metrics_read_failures_total", source="queues"))
        self.mesh.nats.restart()
        self.mesh.initiator.await_line("msg=ready", times=2)
        self.await_total(1, "initiator", "muster_nats_reconnects_total", connection="main")
        self.await_total(1, "initiator", "muster_queue_poison", queue="words-in")


class RunTest(MusterTest):
    def test_a_run_shows_its_metrics_while_it_runs(self):
        gate = Gate(self.folder / "gate")
        self.addCleanup(gate.open)
        last = '    if "c" in [t["fields"][0] for t in item["transactions"]]:\n        open(%r).close()\n'
        begin = "    item = json.loads(line)\n"
        program = self.write("program.py", PROGRAM.replace(begin, begin + last % str(gate.path)))
        job = self.write("words.yaml", JOB.format(program=program))
        data = self.write("in.txt", "\n".join(LINES) + "\n")
        address = free_address()
        run = subprocess.Popen(
            [harness.MUSTER, *self.run_arguments(data, "--metrics", address, "--log-level", "error", job=job)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self.addCleanup(run.kill)
        end = time.monotonic() + READY_SECONDS
        while True:
            try:
                if Page(address).value("muster_items_total", queue="words-in", outcome="aggregated"):
                    break
            except OSError:
                self.assertIsNone(run.poll())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        for path in ("healthz", "readyz"):
            with urllib.request.urlopen(f"http://{address}/{path}", timeout=READY_SECONDS) as answer:
                self.assertEqual(answer.status, 200)
        gate.open()
        out, errors = run.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(json.loads(out)["aggregated"], 7, errors)
        self.assertNotIn("level=info", errors)


class UpTest(MusterTest):
    def start(self, metrics):
        return Program([harness.MUSTER, "up", "--data-dir", self.data_dir, "--listen", free_address(),
                        "--metrics", metrics], "msg=ready")

    def test_one_process_shows_the_metrics_of_its_three_roles(self):
        address = free_address()
        up = self.start(address)
        self.addCleanup(up.kill)
        up.await_ready()
        expected = {}
        for service, metrics in read_catalogue().items():
            if service != "scaling agent":
                expected.update(metrics)
        # Each of the three roles says that it is ready: the last one may open after the line seen.
        end = time.monotonic() + READY_SECONDS
        shown = {}
        while shown != expected and time.monotonic() < end:
            types = Page(address).types()
            shown = {name: types.get(name) for name in expected}
        self.assertEqual(shown, expected)
        again = self.start(address)
        self.assertEqual(again.wait(), 5, "as with any other address that is in use")
        again.await_line("Address already in use")
        self.assertEqual(up.stop(), 0)


class DefaultTest(MusterTest):
    """What services do whom nobody has told where their metrics are."""

    OFFSET = 90

    def setUp(self):
        super().setUp()
        unset = unittest.mock.patch.dict(os.environ)
        unset.start()
        self.addCleanup(unset.stop)
        os.environ.pop("MUSTER_METRICS", None)
        self.port = free_ports(2, step=self.OFFSET)
        self.default = f"{LOOPBACK}:{self.port + self.OFFSET}"

    def start(self, command, *more, host=LOOPBACK):
        program = Program([*command, "--listen", f"{host}:{self.port}", "--data-dir", self.folder / "own",
                           *more], "msg=ready")
        self.addCleanup(program.kill)
        return program

    def up(self, *more, **where):
        return self.start([harness.MUSTER, "up"], *more, **where)

    def test_every_service_shows_them_ninety_ports_above_its_own(self):
        # They are there before the service is ready, which none of these becomes without a NATS server.
        alone = "--nats", f"nats://{free_address()}"
        commands = {role: [os.environ[f"MUSTER_{role.upper()}_PROGRAM"], *alone]
                    for role in ("initiator", "controller", "processor", "scaling_agent")}
        commands["scaling_agent"] += ["--rules", self.write("rules.yaml", RULES), "--actuator", "dry-run"]
        for role, command in commands.items():
            with self.subTest(role):
                service = self.start(command)
                service.await_line(f"at={self.default}/metrics")
                self.assertEqual(Page(self.default).value("muster_build_info"), 1)
                service.kill()
        with self.subTest("muster up"):
            self.up().await_ready()
            self.assertEqual(Page(self.default).value("muster_build_info"), 1)

    def test_they_are_on_loopback_where_the_service_is_not(self):
        self.up("--allow-plaintext", host="0.0.0.0").await_ready()
        self.assertEqual(Page(self.default).value("muster_build_info"), 1)
        self.assertEqual(listeners(self.port + self.OFFSET), {LOOPBACK})

    def test_nowhere_if_they_are_not_wanted(self):
        up = self.up("--metrics", "")
        up.await_ready()
        self.assertEqual(up.stop(), 0)
        self.assertNotIn("msg=metrics", "".join(up.log.lines))

    def test_a_port_in_use_stops_only_who_was_told_to_have_it(self):
        with socket.create_server((LOOPBACK, self.port + self.OFFSET)):
            up = self.up()
            up.await_ready()
            up.await_line("--metrics HOST:PORT names another one")
            self.assertIn(f"metrics at {self.default}: ", "".join(up.log.lines))
            self.assertEqual(up.stop(), 0)
            told = self.up("--metrics", self.default)
            self.assertEqual(told.wait(), 5)
            told.await_line("Address already in use")


def listeners(port):
    """The addresses of IPv4 at which something listens on this port."""
    listening = "0A"
    return {socket.inet_ntoa(bytes.fromhex(fields[1].split(":")[0])[::-1])
            for fields in map(str.split, pathlib.Path("/proc/net/tcp").read_text().splitlines())
            if fields[3] == listening and int(fields[1].split(":")[1], 16) == port}


if __name__ == "__main__":
    harness.main()
