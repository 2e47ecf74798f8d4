#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every query of the dashboards and the alerts against a real Prometheus that has watched a real mesh.

The mesh gets a burst with poison, rejected and repeated items, at first without processors and controller;
its scaling agent starts replicas for it; its NATS server goes and comes back; its agent ends. Then no query
may fail, or be empty but for those that SILENT and QUIET name.

Needs the programs in the variables MUSTER and MUSTER_…_PROGRAM, nats-server and prometheus.
"""

import contextlib
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import monitoring
from monitoring import ROOT

sys.path[:0] = [str(ROOT / "tests/integration"), str(ROOT / "tests/queue_gateway")]
from gateway import Client, message  # noqa: E402
from mesh import Mesh, Program, free_address  # noqa: E402

SCRAPE_SECONDS = 0.5
# Several scrapes: some may fail on a busy machine.
RATE_INTERVAL = "4s"
WAIT_SECONDS = 60
LOOK_SECONDS = 0.1
# Each line is an item. What comes before the good ones is for the first processor.
LINES = ["dead", "bad", "crash", *["flaky"] * 12, *["quick"] * 40, *["good"] * 60]
ITEM_SECONDS = 0.05
MOST_IN_QUEUE = 60
POOL = "burst"
# The label of the targets, as on Kubernetes; empty: there is none, as on hosts.
NAMESPACE = "mesh"

# Series that a short run cannot have, and why.
SILENT = {
    "muster_scale_forecast": "an agent forecasts when it has seen two weeks",
    "muster_duplicates_total": "a result is dropped after a worker froze for longer than its lease",
    "muster_dead_holder_messages_total": "it takes a processor that dies with items in hand",
    "muster_refilled_items_total": "it takes a queue that loses items",
    "muster_metrics_over_limit_total": "it takes a thousand queues",
    "muster_metrics_refused_values_total": "it takes a value that is no number",
    "muster_checkpoint_lag": "it takes a program that reads an event stream through an initiator",
    "muster_certificate_expiry_timestamp_seconds": "it takes a service with a certificate",
    "muster_certificate_lifetime_seconds": "it takes a service with a certificate",
    "muster_telemetry_exports_total": "it takes an OpenTelemetry collector",
    "muster_telemetry_dropped_total": "it takes an OpenTelemetry collector",
}
# Alerts that a short run has no reason for. Their queries may be empty, their series not.
QUIET = {
    "MusterManyRedeliveries": "it takes a rate over minutes",
    "MusterHandlerRestarts": "its program dies once",
    "MusterTriggersLost": "no trigger is lost",
    "MusterScalingAtMost": "whether more than the most is asked for depends on the speed of the machine",
    "MusterColdStartSlow": "a process starts at once",
    "MusterNatsReconnects": "NATS goes once",
    "MusterGatewayFails": "neither its disk nor NATS fails it",
    "MusterDamage": "no byte is damaged",
    "MusterSyncSlow": "the disk is fast enough",
    "MusterCommitSlow": "the disk is fast enough",
    "MusterCertificateEnds": "it takes a service with a certificate",
    "MusterMetricsOverLimit": "it takes a thousand queues",
    "MusterPartitionUnowned": "it has an owner as soon as its controller starts",
}

# What a line says is what becomes of its item. Good ones wait until the gate is a file.
HANDLER = """
import json, os, sys, time
for line in sys.stdin:
    item = json.loads(line)
    texts = [(t["line"], t["fields"][0]) for t in item["transactions"]]
    words = {text for _, text in texts}
    answer = {"item": item["item"]}
    if "dead" in words:
        answer.update(outcome="dead", why="it is poison")
    elif "crash" in words and item["attempt"] == 1:
        os._exit(3)
    elif "flaky" in words and item["attempt"] == 1:
        answer.update(outcome="retry", after_ms=100, why="not at the first attempt")
    else:
        while "good" in words and not os.path.exists(sys.argv[2]):
            time.sleep(0.02)
        time.sleep(float(sys.argv[1]))
        rejected = [{"line": number, "reason": "it is bad"} for number, text in texts if text == "bad"]
        rows = [{"text": text, "lines": 1} for _, text in texts if text != "bad"]
        answer.update(outcome="ok", groups={"by_text": rows}, rejected=rejected)
    print(json.dumps(answer), flush=True)
"""
JOB = """
name: {pool}
input: {{format: lines}}
item: {{transactions: 1}}
handler: {{command: [python3, {program}, '{seconds}', {gate}], version: "1"}}
sla: {{max: 1s}}
tolerate: {{rejected: 100%}}
groups:
  - {{name: by_text, keys: [text], measures: {{lines: int}}}}
"""
RULES = """
mode: act
targets:
  {pool}: {{kind: process, name: muster-processor, queues: [{pool}-in], sla: {{max: 3s}}, max: 2}}
"""
PROMETHEUS = """
global: {{scrape_interval: {scrape}ms, scrape_timeout: {scrape}ms, evaluation_interval: 1s}}
rule_files: {rules}
scrape_configs:
- job_name: muster
  static_configs:
  - targets: {targets}
    labels: {labels}
"""


class MeasuredMesh(Mesh):
    """A mesh whose services show their metrics; its roles start one after the other."""

    def __init__(self, folder):
        super().__init__(folder, os.environ.get("MUSTER_NATS_SERVERS", "nats-server").split(":")[0], 1)
        self.metrics = {name: free_address()
                        for name in ("initiator", "controller", "processor", "scaling-agent", "queue-gateway")}
        self.agent = None

    def start(self):
        self.nats = self.start_nats()
        self.nats.await_ready()
        self.start_role("initiator", self.server, "--max-queue-items", MOST_IN_QUEUE)

    def start_role(self, role, address=None, *more, data=None):
        program = super().start_role(role, address, "--metrics", self.metrics[role], *more, data=data)
        program.await_ready()
        return program

    def start_agent(self, rules):
        self.agent = self.add(Program(
            [monitoring.program("MUSTER_SCALING_AGENT_PROGRAM"), "--rules", rules, "--actuator", "process",
             "--cold-start", "1s", "--listen", free_address(), *self.nats_arguments(),
             "--lease", f"{self.LEASE_SECONDS}s", "--data-dir", self.folder / "agent",
             "--processor-program", monitoring.program("MUSTER_PROCESSOR_PROGRAM"),
             "--replica-keeper", monitoring.program("MUSTER_KEEPER_PROGRAM"),
             "--processor-args", "--threads 1",
             "--metrics", self.metrics["scaling-agent"]], "msg=ready"))
        self.agent.await_ready()

    def start_gateway(self):
        """Its queue may have one request a second."""
        address = free_address()
        self.add(Program(
            [monitoring.program("MUSTER_QUEUE_GATEWAY"), "--listen", address, *self.nats_arguments(),
             "--queue-requests", "1", "--metrics", self.metrics["queue-gateway"]], "msg=ready")).await_ready()
        return address

    def keepers(self):
        """The pids of the replicas' keepers."""
        living = []
        for record in (self.folder / "agent/replicas/replicas").glob("*/record"):
            with contextlib.suppress(OSError, ValueError):
                if not (record.parent / "end").exists():
                    living.append(json.loads(record.read_text())["pid"])
                    os.kill(living[-1], 0)
        return living

    def kill(self):
        """The agent goes first: it would start others."""
        if self.agent is not None:
            self.agent.kill()
        for pid in self.keepers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not self.keepers(), "the replicas end")
        super().kill()


def wait_until(reached, what):
    end = time.monotonic() + WAIT_SECONDS
    while not (answer := reached()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {WAIT_SECONDS} s")
        time.sleep(LOOK_SECONDS)
    return answer


class Prometheus:
    def __init__(self, folder, targets, *more):
        self.address = free_address()
        configuration = folder / "prometheus.yaml"
        configuration.write_text(PROMETHEUS.format(
            scrape=int(SCRAPE_SECONDS * 1000), rules=json.dumps([str(monitoring.RULES), str(monitoring.RECORDING)]),
            targets=json.dumps(targets), labels=json.dumps({"namespace": NAMESPACE} if NAMESPACE else {})))
        self.begun = time.time()
        self.program = Program(
            [monitoring.find("prometheus"), f"--config.file={configuration}",
             f"--storage.tsdb.path={folder / 'prometheus'}", f"--web.listen-address={self.address}", *more],
            "Server is ready")
        self.program.await_ready()

    def get(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=WAIT_SECONDS) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def value(self, query):
        """The sum of what a query answers now; 0: nothing."""
        return sum(float(one["value"][1]) for one in self.get("query", query=query)["result"])

    def await_true(self, query):
        """Waits until the query's answer is above 0."""
        wait_until(lambda: self.value(query) > 0, query)

    def series(self, query):
        """The series of the whole run that have a number in them."""
        # One step more than until now: the last scrape may lie behind the last step.
        found = self.get("query_range", query=query, start=self.begun, end=time.time() + SCRAPE_SECONDS,
                         step=SCRAPE_SECONDS)
        return [one["metric"] for one in found["result"]
                if any(math.isfinite(float(number)) for _, number in one["values"])]


class MeasuredRun(unittest.TestCase):
    """A mesh that Prometheus watches while run_mesh has it do something; the queries look at it afterwards."""

    @classmethod
    def setUpClass(cls):
        for variable in ("MUSTER", "MUSTER_INITIATOR_PROGRAM", "MUSTER_CONTROLLER_PROGRAM",
                         "MUSTER_PROCESSOR_PROGRAM", "MUSTER_SCALING_AGENT_PROGRAM",
                         "MUSTER_KEEPER_PROGRAM", "MUSTER_QUEUE_GATEWAY"):
            monitoring.program(variable)
        if monitoring.find("prometheus") is None:
            raise unittest.SkipTest("there is no prometheus")
        folder = tempfile.TemporaryDirectory(prefix="muster-monitoring-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.mesh = MeasuredMesh(cls.folder)
        cls.addClassCleanup(cls.mesh.kill)
        cls.prometheus = Prometheus(cls.folder, list(cls.mesh.metrics.values()))
        cls.addClassCleanup(cls.prometheus.program.kill)
        cls.run_mesh()

    @classmethod
    def muster(cls, *arguments, expected=0):
        done = subprocess.run(
            [monitoring.program("MUSTER"), *map(str, arguments), "--server", cls.mesh.server],
            capture_output=True, text=True, timeout=WAIT_SECONDS)
        if done.returncode != expected:
            raise AssertionError(f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    @classmethod
    def write(cls, name, text):
        path = cls.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    @classmethod
    def use_gateway(cls):
        """Requests that are answered, refused, and too many."""
        with contextlib.closing(Client(cls.mesh.start_gateway())) as client:
            client.ask("PUT", "/watched")
            for _ in range(2):
                client.ask("POST", "/watched/messages", message("x"))
            client.ask("GET", "/?comp=list", headers={"x-ms-date": "yesterday"})
            client.ask("GET", "/?comp=list")
            for name in ("throttled", "auth_failures", "requests"):
                cls.prometheus.await_true(f"sum(muster_gateway_{name}_total)")
            cls.prometheus.await_true('sum(muster_gateway_requests_total{code="200"})')
            client.ask("GET", "/?comp=list")  # so that there is a rate
            cls.prometheus.await_true('sum(muster_gateway_requests_total{code="200"}) > 1')

    def chosen(self, expression, rate_interval=RATE_INTERVAL):
        """A query of a dashboard as Grafana sends it."""
        for variable, text in (("$__rate_interval", rate_interval), ("$namespace", NAMESPACE or ".*"),
                               ("$job", "muster"), ("$instance", ".+"), ("${muster_job}", POOL), ("${pool}", ""),
                               ("${replica_price}", "0.05"), ("${calls_price}", "0.01")):
            expression = expression.replace(variable, text)
        return expression

    def names(self, expression):
        return {name for name, _ in monitoring.selectors(expression)}


class LiveTest(MeasuredRun):
    @classmethod
    def run_mesh(cls):
        """The run that the queries look at."""
        prometheus, mesh = cls.prometheus, cls.mesh
        prometheus.await_true("absent(muster_build_info)")
        mesh.start()
        cls.submit()
        prometheus.await_true('sum(muster_queue_backlog{queue=~".+-in"})')
        mesh.start_role("processor", None, "--threads", 1, "--standby", "opening")
        prometheus.await_true('sum(muster_parked_processors{release="opening"})')
        cls.muster("release", "opening")
        prometheus.await_true('sum(muster_released_epoch{release="opening"})')
        prometheus.await_true('sum(muster_queue_backlog{queue=~".+-out"})')
        for name in ("muster_rejected_total", "muster_dead_letters_total", "muster_redeliveries_total"):
            prometheus.await_true(f"sum({name})")
        mesh.start_role("controller", mesh.reporter)
        mesh.start_agent(cls.write("rules.yaml", RULES.format(pool=POOL)))
        cls.muster("batch", "get", 999, expected=1)
        prometheus.await_true("sum(muster_worker_cold_start_seconds_count)")
        cls.use_gateway()
        prometheus.await_true(f"sum(up) == {len(mesh.metrics)}")
        # What waits grows old while the gate is shut.
        prometheus.await_true('max(max by (queue) (muster_queue_oldest_age_seconds{queue=~".+-in"})'
                              " > on (queue) min by (queue) (muster_sla_target_seconds))")
        cls.write("gate", "")
        prometheus.await_true(f"sum(muster_items_total) == {len(LINES)}")
        prometheus.await_true("sum(muster_sla_violations_total)")
        cls.lose_nats()
        mesh.agent.stop()
        prometheus.await_true("count(up == 0)")
        prometheus.await_true("count(max_over_time(muster_scale_desired[1h]) unless muster_scale_desired)")

    @classmethod
    def submit(cls):
        """Submits a burst that no processor works on yet, so it will be late."""
        program = cls.write("handler.py", HANDLER)
        cls.muster("job", "apply", cls.write("job.yaml", JOB.format(
            pool=POOL, program=program, seconds=ITEM_SECONDS, gate=cls.folder / "gate")))
        cls.muster("batch", "submit", POOL, "--input", cls.write("lines.txt", "\n".join(LINES) + "\n"))

    @classmethod
    def lose_nats(cls):
        cls.mesh.nats.kill()
        cls.prometheus.await_true("max(muster_metrics_read_failures_total) > 6")
        cls.mesh.nats.restart()
        cls.prometheus.await_true("sum(muster_nats_reconnects_total)")

    def test_every_query_of_the_dashboards_answers(self):
        count = 0
        for board in monitoring.dashboards().values():
            for panel in monitoring.panels(board):
                for target in panel["targets"]:
                    count += 1
                    with self.subTest(board["title"], panel=panel["title"], query=target["expr"]):
                        found = self.prometheus.series(self.chosen(target["expr"]))
                        if not found:
                            silent = self.names(target["expr"]) & set(SILENT)
                            self.assertTrue(silent, "the answer is empty")
                            print(f"empty: {target['expr']}: {SILENT[silent.pop()]}", file=sys.stderr)
                        shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                        for labels in found:
                            self.assertLessEqual(shown, set(labels))
        print(f"{count} queries of dashboards", file=sys.stderr)

    def test_every_alert_answers_and_its_series_are_there(self):
        for rule in monitoring.alerts():
            with self.subTest(rule["alert"]):
                found = self.prometheus.series(rule["expr"])
                if not found:
                    self.assertIn(rule["alert"], QUIET, "the answer is empty")
                    print(f"quiet: {rule['alert']}: {QUIET[rule['alert']]}", file=sys.stderr)
                for name, _ in monitoring.selectors(rule["expr"]):
                    if name not in SILENT:
                        self.assertTrue(self.prometheus.series(name), f"{name} is empty")

    def test_every_record_is_there_with_the_labels_of_its_level(self):
        for rule in monitoring.recordings():
            with self.subTest(rule["record"]):
                found = self.prometheus.series(rule["record"])
                self.assertTrue(found, "nothing was recorded")
                for labels in found:
                    self.assertEqual(set(labels) - {"__name__"}, monitoring.level(rule["record"]))

    def test_prometheus_evaluates_every_rule(self):
        rules = [rule for group in self.prometheus.get("rules")["groups"] for rule in group["rules"]]
        self.assertEqual({rule["name"] for rule in rules}, {rule["alert"] for rule in monitoring.alerts()} |
                         {rule["record"] for rule in monitoring.recordings()})
        for rule in rules:
            self.assertEqual(rule["health"], "ok", rule)


if __name__ == "__main__":
    monitoring.main()
