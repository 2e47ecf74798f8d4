#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the chart gives Prometheus and Grafana."""

import json
import pathlib
import re
import shutil
import tempfile

import yaml

import chart
from chart import CHART, NAMESPACE, ChartTest
from matrix import GATEWAY, rendered


class MonitoringTest(ChartTest):
    def test_a_pod_monitor_finds_the_metrics_of_every_service(self):
        values = (*GATEWAY, "scaler.mode=agent", "pools.default.jobs={retail}", "metrics.enabled=true",
                  "metrics.podMonitor.enabled=true", "metrics.podMonitor.interval=30s",
                  "metrics.podMonitor.labels.release=of-mine")
        manifests = self.render(*values)
        monitor = manifests.get("PodMonitor", "muster")
        self.assertEqual(monitor["metadata"]["labels"]["release"], "of-mine")
        [endpoint] = monitor["spec"]["podMetricsEndpoints"]
        self.assertEqual((endpoint["port"], endpoint["path"], endpoint["interval"]), ("metrics", "/metrics", "30s"))
        self.assertEqual(monitor["spec"]["namespaceSelector"], {"matchNames": [NAMESPACE]})
        selector = monitor["spec"]["selector"]
        found = set()
        for one in manifests.workloads():
            labels = one["spec"]["template"]["metadata"]["labels"]
            ports = {port["name"] for port in one["spec"]["template"]["spec"]["containers"][0]["ports"]}
            if selector["matchLabels"].items() <= labels.items():
                found.add(one["metadata"]["name"])
            self.assertEqual("metrics" in ports, one["metadata"]["name"] != "muster-nats")
        self.assertEqual(len(found), 6)
        self.assertNotIn("ServiceMonitor", {one["kind"] for one in manifests.all})

    def test_the_alerts_find_the_scrape_job_by_any_name_of_the_chart(self):
        [job] = set(re.findall(r'up\{job=~"([^"]*)"', (CHART / "alerts.yaml").read_text(encoding="utf-8")))
        for kind, endpoints in (("ServiceMonitor", "endpoints"), ("PodMonitor", "podMetricsEndpoints")):
            monitor = self.render("nameOverride=mesh", "metrics.enabled=true",
                                  f"metrics.{kind[0].lower() + kind[1:]}.enabled=true").get(kind, "muster-mesh")
            [endpoint] = monitor["spec"][endpoints]
            [relabeling] = endpoint["relabelings"]
            self.assertEqual(relabeling["targetLabel"], "job")
            self.assertRegex(relabeling["replacement"], f"^({job})$")

    def test_one_of_the_two_monitors_scrapes(self):
        self.assertIn("need metrics.enabled", self.refusal("metrics.podMonitor.enabled=true"))
        self.assertIn("each pod would be scraped twice", self.refusal(
            "metrics.enabled=true", "metrics.podMonitor.enabled=true", "metrics.serviceMonitor.enabled=true"))

    def test_dashboards_come_from_the_chart_if_it_has_any(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / "muster"
            shutil.copytree(CHART, copy)
            (copy / "dashboards").mkdir(exist_ok=True)
            (copy / "dashboards/of_mine.json").write_text('{"title": "{{ of mine }}"}\n')
            done = chart.helm("template", "muster", copy, "--kube-version", "1.36",
                              *chart.options_of(("dashboards.enabled=true",)))
        self.assertEqual(done.returncode, 0, done.stderr)
        board = chart.Manifests(done.stdout).get("ConfigMap", "muster-of-mine")
        self.assertEqual(json.loads(board["data"]["of_mine.json"]), {"title": "{{ of mine }}"})
        self.assertEqual(board["metadata"]["labels"]["grafana_dashboard"], "1")

    def test_the_dashboards_of_the_repository_are_in_the_chart(self):
        maps = self.render("dashboards.enabled=true").of("ConfigMap")
        for name in ("muster", "muster-job"):
            board = maps[f"muster-{name}"]["data"][f"{name}.json"]
            self.assertEqual(json.loads(board), json.loads(
                (chart.ROOT / f"deploy/grafana/dashboards/{name}.json").read_text(encoding="utf-8")))
            self.assertNotIn(f"muster-{name}", rendered("defaults").of("ConfigMap"))

    def test_the_rules_are_those_of_the_repository(self):
        rules = rendered("production").of("PrometheusRule")
        self.assertEqual(set(rules), {"muster", "muster-recording"})
        for name, file in (("muster", "muster.rules.yaml"), ("muster-recording", "muster.recording.yaml")):
            self.assertEqual(rules[name]["spec"], yaml.safe_load(
                (chart.ROOT / "deploy/prometheus" / file).read_text(encoding="utf-8")))
            self.assertEqual(rules[name]["metadata"]["labels"], rules["muster"]["metadata"]["labels"])
        self.assertNotIn("PrometheusRule", {one["kind"] for one in rendered("defaults").all})


if __name__ == "__main__":
    chart.main()
