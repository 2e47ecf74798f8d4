#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the dashboards and the alerts to an hour in which a mesh has no work: zeros, not gaps, and no alert.

A real mesh works off a burst in time, and a real Prometheus reads it until it has been idle for half a minute.
That half minute is the idle hour in a shortened clock: its samples, again and again with counters that go on
from where they were, follow the burst's in blocks that promtool makes. So rates are those of an idle mesh,
and the hour is as long as alerts ask for.

Needs what live_test.py needs, and promtool.
"""

import json
import math
import re
import subprocess
import sys
import time
import unittest

import live_test
import monitoring
from live_test import HANDLER, JOB, POOL, RULES, Prometheus

# A scrape that fails because this machine is busy would be a gap of the whole hour.
live_test.SCRAPE_SECONDS = 2
live_test.NAMESPACE = ""  # live_test.py has one
BURST_RATE_INTERVAL = f"{4 * live_test.SCRAPE_SECONDS}s"
HOUR_SECONDS = 3600
TILE_SECONDS = 30
# Of the samples, one in so many seconds is kept: a usual interval of scrapes.
SCRAPE_SECONDS = 10
RATE_INTERVAL = f"{4 * SCRAPE_SECONDS}s"
STEP_SECONDS = 60
# More than a processor does in the promised time, which is longer than a start: the agent starts replicas, and
# keeps none.
LINES = ["bad", *["good"] * 150]
ITEM_SECONDS = 0.1
PROMISE = "{max: 8s}"

# Metrics and panels that have gaps without work, and why they are meant.
GAPS = {
    "muster_item_latency_seconds_bucket": "nothing was counted, so nothing took any time",
    "muster_handler_call_duration_seconds_bucket": "no handler was called",
    "messaging_process_duration_seconds_bucket": "no attempt was made",
    "messaging_client_operation_duration_seconds_bucket": "nothing was sent or settled",
    "muster_batch_progress": "no batch is open",
    "muster_batch_eta_seconds": "no batch is open",
    "muster_batch_deadline_remaining_seconds": "no batch is open",
    "muster_worker_cold_start_seconds_bucket": "no replica was started",
    "muster_rocksdb_sync_seconds_bucket": "nothing was synced",
    "muster_sqlite_commit_seconds_bucket": "nothing was committed",
    "muster_gateway_request_duration_seconds_bucket": "nobody asked the gateway",
    "Share of time that is work": "no task ran",
    "Shares of the workers' time": "no task ran",
    "Time of work for an item": "no item was counted",
    "Workers' time for a thousand transactions": "no transaction was counted",
}
# Panels that are zero without work, in every line of theirs.
ZERO = {
    "Transactions by outcome", "Backlog", "Oldest message", "Arrival against completion", "Time to drain",
    "Held back items", "Redeliveries", "Redeliveries and duplicates", "Rejected transactions", "Wake-ups",
    "Items that wait",
}
# Of these panels, lines that are levels and not work.
LEVELS = {"promise"}
# Whether these fire depends on the machine.
OF_THE_MACHINE = {"MusterSyncSlow", "MusterCommitSlow", "MusterColdStartSlow"}


def counters():
    """The series of docs/operations/metrics.md that only grow."""
    text = (monitoring.ROOT / "docs/operations/metrics.md").read_text(encoding="utf-8")
    for name, kind in re.findall(r"^\| `(\w+)` \| (counter|histogram) \|", text, re.MULTILINE):
        yield from [name] if kind == "counter" else [name + end for end in ("_bucket", "_sum", "_count")]


def kept(samples):
    """One sample of each SCRAPE_SECONDS."""
    return list({int(at // SCRAPE_SECONDS): (at, value) for at, value in samples}.values())


def hour(samples, begin, grows):
    """An hour of tiles of these samples of one: (seconds since the begin, value)."""
    gain = samples[-1][1] - samples[0][1] if grows else 0
    for tile in range(HOUR_SECONDS // TILE_SECONDS):
        for at, value in kept(samples):
            yield at - begin + tile * TILE_SECONDS, value + tile * gain


def open_metrics(labels, samples):
    name = labels["__name__"]
    # JSON and this format escape the same characters of a label's value in the same way.
    pairs = ",".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in labels.items()
                     if key != "__name__")
    return [f"{name}{{{pairs}}} {value!r} {at:.3f}\n" for at, value in samples]


class IdleHourTest(live_test.MeasuredRun):
    @classmethod
    def run_mesh(cls):
        prometheus, mesh = cls.prometheus, cls.mesh
        mesh.start()
        mesh.start_role("controller", mesh.reporter)
        mesh.start_role("processor", None, "--threads", 1)
        mesh.start_agent(cls.write("rules.yaml", RULES.format(pool=POOL).replace("{max: 3s}", PROMISE)))
        cls.use_gateway()
        prometheus.await_true(f"sum(up) == {len(mesh.metrics)}")
        job = JOB.format(pool=POOL, program=cls.write("handler.py", HANDLER), seconds=ITEM_SECONDS,
                         gate=cls.write("gate", "")).replace("sla: {max: 1s}", "sla: {max: 1h}")
        cls.muster("job", "apply", cls.write("job.yaml", job))
        cls.muster("batch", "submit", POOL, "--input", cls.write("lines.txt", "\n".join(LINES) + "\n"))
        prometheus.await_true(f"sum(muster_items_total) == {len(LINES)}")
        prometheus.await_true("absent(muster_batch_progress)")
        prometheus.await_true("max(muster_scale_desired) == bool 0")
        prometheus.await_true('sum(muster_workers{state="ready"}) == bool 0')
        # Rates over the last seconds of work are over.
        idle = time.time()
        prometheus.await_true(f"min(timestamp(up)) >= bool {idle + 2 * SCRAPE_SECONDS}")
        begin = idle + SCRAPE_SECONDS
        prometheus.await_true(f"min(timestamp(up)) >= bool {begin + TILE_SECONDS + 1}")
        cls.make_hour(begin)

    @classmethod
    def make_hour(cls, begin):
        """Opens a Prometheus that has the burst and an hour of idling after it, which ended just now."""
        seconds = math.ceil(time.time() - cls.prometheus.begun)
        found = cls.prometheus.get("query", query=f'{{__name__=~".+"}}[{seconds}s]')
        shift = HOUR_SECONDS
        grows = set(counters())
        blocks = cls.folder / "hour"
        blocks.mkdir()
        with open(blocks / "hour.txt", "w", encoding="utf-8") as file:
            for one in found["result"]:
                samples = [(float(at), float(value)) for at, value in one["values"]]
                before = [(at - shift, value) for at, value in kept(samples) if at < begin]
                idle = [(at, value) for at, value in samples if begin <= at < begin + TILE_SECONDS]
                file.writelines(open_metrics(one["metric"], before))
                if idle:
                    file.writelines(open_metrics(one["metric"], (
                        (begin - shift + after, value)
                        for after, value in hour(idle, begin, one["metric"]["__name__"] in grows))))
            file.write("# EOF\n")
        subprocess.run([monitoring.find("promtool"), "tsdb", "create-blocks-from", "openmetrics",
                        blocks / "hour.txt", blocks / "prometheus"], check=True, capture_output=True)
        cls.begin, cls.end = begin - shift, begin - shift + HOUR_SECONDS
        # Blocks do not tell that a series is gone, as a scrape does: it is when two scrapes lack it.
        cls.hour = Prometheus(blocks, [], f"--query.lookback-delta={2 * SCRAPE_SECONDS}s")
        cls.addClassCleanup(cls.hour.program.kill)

    def answers(self, query, step=STEP_SECONDS):
        """{labels: {step: number}} of the hour, once the rates have forgotten the burst."""
        start = self.begin + 4 * SCRAPE_SECONDS
        found = self.hour.get("query_range", query=self.chosen(query, RATE_INTERVAL), start=start,
                              end=self.end - SCRAPE_SECONDS, step=step)
        lines = {tuple(sorted(one["metric"].items())): {
            round((at - start) / step): float(text) for at, text in one["values"] if math.isfinite(float(text))}
            for one in found["result"]}
        return {labels: line for labels, line in lines.items() if line}

    def each_query(self):
        for board in monitoring.dashboards().values():
            for panel in monitoring.panels(board):
                for target in panel["targets"]:
                    about = {"dashboard": board["title"], "panel": panel["title"], "query": target["expr"]}
                    yield about, panel["title"], target

    def test_lines_have_no_gaps_but_where_a_gap_is_meant(self):
        steps = set(range(int((HOUR_SECONDS - 5 * SCRAPE_SECONDS) / STEP_SECONDS) + 1))
        count, meant = 0, set()
        for about, title, target in self.each_query():
            if gaps := ({title} | self.names(target["expr"])) & set(GAPS):
                meant |= gaps
                continue
            with self.subTest(**about):
                lines = self.answers(target["expr"])
                for labels, line in lines.items():
                    self.assertEqual(steps - set(line), set(), f"{labels}: gaps")
                if not lines:
                    self.assertEqual(self.prometheus.series(self.chosen(target["expr"], BURST_RATE_INTERVAL)), [],
                                     "the line ended with the work")
                count += bool(lines)
        self.assertEqual(meant, set(GAPS))
        self.assertGreater(count, 0)
        print(f"{count} queries of dashboards have lines without work", file=sys.stderr)

    def test_work_that_there_is_not_is_zero(self):
        seen = set()
        for about, title, target in self.each_query():
            if title not in ZERO or target["legendFormat"].split()[-1] in LEVELS:
                continue
            seen.add(title)
            with self.subTest(**about):
                lines = self.answers(target["expr"])
                self.assertTrue(lines, "there is no line")
                for labels, line in lines.items():
                    self.assertEqual(set(line.values()), {0}, labels)
        self.assertEqual(seen, ZERO)

    def test_no_alert_fires_though_its_series_are_there(self):
        for rule in monitoring.alerts():
            with self.subTest(rule["alert"]):
                lines = self.answers(rule["expr"], SCRAPE_SECONDS)
                if rule["alert"] in OF_THE_MACHINE and lines:
                    print(f"{rule['alert']} looks at this machine: {lines}", file=sys.stderr)
                else:
                    self.assertEqual(lines, {})

    def test_the_hour_is_that_of_a_mesh_that_is_there(self):
        for query in ("count(up == 1)", "count(muster_build_info)"):
            [line] = self.answers(query).values()
            self.assertEqual(set(line.values()), {len(self.mesh.metrics)})
        [line] = self.answers('sum(increase(muster_storage_transactions_total[10m]))').values()
        self.assertGreater(min(line.values()), 0, "the counters do not go on")


if __name__ == "__main__":
    monitoring.main()
