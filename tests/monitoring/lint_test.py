#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules that the dashboards, the alerts and their runbooks keep, read from the files alone.

The program that MUSTER names tells which commands there are.
"""

import functools
import json
import re
import subprocess
import sys
import unittest

import monitoring
from monitoring import ROOT

# In every selector of a dashboard.
CHOSEN = ('namespace=~"$namespace"', 'job=~"$job"', 'instance=~"$instance"')
VARIABLES = ["datasource", "namespace", "job", "instance"]
# In every selector of the dashboard of a single job, too.
OF_A_JOB = "${muster_job}"
# What records work out of several metrics.
RECORDED_ALONE = {"muster_item_arrivals", "muster_batch_time_to_spare_seconds", "muster_worker_time_seconds_busy"}
SEVERITIES = {"info", "warning", "critical"}
SECTIONS = ["What it means", "What users feel", "First look", "Causes and mends", "When it resolves"]
COMMAND = re.compile(r"^muster (?!-)\S.*$", re.MULTILINE)


class DashboardTest(unittest.TestCase):
    def boards(self):
        boards = monitoring.dashboards()
        self.assertTrue(boards)
        for path, board in boards.items():
            with self.subTest(path.name):
                yield board

    def each_panel(self):
        for board in self.boards():
            for panel in monitoring.panels(board):
                with self.subTest(panel["title"]):
                    yield panel

    def test_they_have_fixed_uids_of_their_own_and_one_schema(self):
        uids = [board["uid"] for board in monitoring.dashboards().values()]
        self.assertEqual(len(set(uids)), len(uids))
        for board in self.boards():
            self.assertRegex(board["uid"], "^muster-[a-z-]+$")
            self.assertEqual(board["schemaVersion"], 39)
            self.assertNotIn("id", board, "Grafana gives it")

    def test_they_have_the_variables_that_their_queries_use(self):
        for board in self.boards():
            names = [variable["name"] for variable in board["templating"]["list"]]
            self.assertEqual(names[:len(VARIABLES)], VARIABLES)
            used = set(re.findall(r"\$\{?(\w+)", json.dumps(board)))
            self.assertEqual(used - {"__rate_interval", "__all"}, set(names))

    def test_a_mesh_without_namespaces_is_chosen_too(self):
        for board in self.boards():
            [namespace] = [one for one in board["templating"]["list"] if one["name"] == "namespace"]
            self.assertEqual(namespace["allValue"], ".*")

    def test_each_leads_to_the_others_with_what_is_chosen(self):
        uids = {board["uid"] for board in monitoring.dashboards().values()}
        self.assertGreater(len(uids), 1)
        for board in self.boards():
            self.assertEqual({link["url"] for link in board["links"]},
                             {f"/d/{uid}" for uid in uids - {board["uid"]}})
            for link in board["links"]:
                self.assertTrue(link["includeVars"] and link["keepTime"] and link["title"])

    def test_every_query_about_a_job_looks_only_at_the_job_that_is_chosen(self):
        [board] = [board for board in monitoring.dashboards().values() if board["uid"] == "muster-job"]
        for panel in monitoring.panels(board):
            for target in panel["targets"]:
                for name, matchers in monitoring.selectors(target["expr"]):
                    self.assertIn(OF_A_JOB, matchers, f"{name} in {target['expr']}")

    def test_the_names_of_jobs_come_from_their_queues(self):
        [board] = [board for board in monitoring.dashboards().values() if board["uid"] == "muster-job"]
        [variable] = [one for one in board["templating"]["list"] if one["name"] == "muster_job"]
        self.assertFalse(variable["multi"] or variable["includeAll"])
        pattern = re.compile(variable["regex"].strip("/"))
        names = [match[1] for queue in ("retail-in", "my-job-in", "retail-out", "shop/orders-in")
                 if (match := pattern.search(queue))]
        self.assertEqual(names, ["retail", "my-job"])

    def test_every_panel_says_what_it_shows_and_in_which_unit(self):
        for panel in self.each_panel():
            self.assertTrue(panel["title"])
            self.assertRegex(panel["description"], r"\.$")
            self.assertTrue(panel["fieldConfig"]["defaults"]["unit"])
            self.assertTrue(panel["targets"])

    def test_panels_have_numbers_of_their_own_and_do_not_overlap(self):
        for board in self.boards():
            numbers = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(set(numbers)), len(numbers))
            covered = set()
            for panel in board["panels"]:
                at = panel["gridPos"]
                self.assertLessEqual(at["x"] + at["w"], 24)
                cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                         for y in range(at["y"], at["y"] + at["h"])}
                self.assertFalse(cells & covered, panel["title"])
                covered |= cells

    def test_every_query_looks_only_at_what_the_variables_choose(self):
        for panel in self.each_panel():
            self.assertEqual(panel["datasource"]["uid"], "${datasource}")
            for target in panel["targets"]:
                self.assertEqual(target["datasource"]["uid"], "${datasource}")
                self.assertTrue(monitoring.selectors(target["expr"]))
                for name, matchers in monitoring.selectors(target["expr"]):
                    for chosen in CHOSEN:
                        self.assertIn(chosen, matchers, f"{name} in {target['expr']}")

    def test_every_interval_is_the_one_that_fits_the_scrapes(self):
        for panel in self.each_panel():
            for target in panel["targets"]:
                self.assertLessEqual(set(re.findall(r"\[([^\]]*)\]", target["expr"])), {"$__rate_interval"})

    def test_every_query_has_a_letter_and_a_legend_of_its_own(self):
        for panel in self.each_panel():
            for key in ("refId", "legendFormat"):
                values = [target[key] for target in panel["targets"]]
                self.assertEqual(len(set(values)), len(values))


class PageTest(unittest.TestCase):
    PAGE = ROOT / "docs/operations/dashboards.md"

    def test_it_has_a_paragraph_for_each_row_in_the_order_of_the_dashboards(self):
        text = self.PAGE.read_text(encoding="utf-8")
        rows = [panel["title"].rstrip("?") for uid in ("muster-mesh", "muster-job")
                for board in monitoring.dashboards().values() if board["uid"] == uid
                for panel in board["panels"] if panel["type"] == "row"]
        self.assertEqual([title.rstrip("?.") for title in re.findall(r"^\*\*(.+?)\*\*", text, re.MULTILINE)], rows)

    def test_its_pictures_are_there_and_small_and_there_are_no_others(self):
        named = re.findall(r"\]\(\.\./pictures/([a-z_]+\.png)\)", self.PAGE.read_text(encoding="utf-8"))
        found = {path.name: path.stat().st_size for path in (ROOT / "docs/pictures").glob("*.png")}
        self.assertEqual(sorted(named), sorted(found))
        self.assertLess(max(found.values()), 150_000)

    def test_panels_that_pictures_show_are_there(self):
        drawn = (ROOT / "tests/monitoring/make_pictures").read_text(encoding="utf-8")
        titles = {(board["uid"], panel["title"]) for board in monitoring.dashboards().values()
                  for panel in monitoring.panels(board)}
        pictures = re.findall(r'\("(muster-[a-z]+)", \[(.*?)\]\)', drawn, re.DOTALL)
        self.assertGreater(len(pictures), 1)
        for uid, panels in pictures:
            for title in re.findall(r'"([^"]+)"', panels):
                self.assertIn((uid, title), titles)


class MetricsTest(unittest.TestCase):
    def assert_known(self, where, expression):
        series = monitoring.catalogue()
        for name, matchers in monitoring.selectors(expression):
            self.assertIn(name, series, f"{where}: docs/operations/metrics.md has no such series")
            self.assertLessEqual(monitoring.matched_labels(matchers) - monitoring.TARGET_LABELS,
                                 series[name], f"{where}: {name}")

    def test_queries_of_dashboards_name_metrics_and_labels_of_the_catalogue(self):
        for board in monitoring.dashboards().values():
            for panel in monitoring.panels(board):
                for target in panel["targets"]:
                    self.assert_known(panel["title"], target["expr"])

    def test_alerts_name_metrics_and_labels_of_the_catalogue(self):
        for rule in monitoring.alerts():
            self.assert_known(rule["alert"], rule["expr"])

    def test_every_metric_has_a_panel(self):
        shown = {name for board in monitoring.dashboards().values() for panel in monitoring.panels(board)
                 for target in panel["targets"] for name, _ in monitoring.selectors(target["expr"])}
        families = {re.sub("_(bucket|sum|count)$", "", name) for name in shown}
        every = {re.sub("_(bucket|sum|count)$", "", name) for name in monitoring.catalogue()}
        self.assertEqual(every - families, set())

    def test_selectors_are_found_in_all_that_queries_have(self):
        self.assertEqual(
            monitoring.selectors('sum by (a, b) (rate(x_total{q=~"a{1,2}-(in)",b="}"}[5m] offset 5m)) '
                                 '/ on (a) group_left () y > 1e3 or absent(z{}) unless inf'),
            [("x_total", '{q=~"a{1,2}-(in)",b="}"}'), ("y", ""), ("z", "{}")])


class RecordTest(unittest.TestCase):
    def test_names_are_level_metric_and_operations(self):
        known = {re.sub("_total$", "", name) for name in monitoring.catalogue()}
        known |= {re.sub("_bucket$", "", name) for name in known}
        labels = set().union(*monitoring.catalogue().values()) | monitoring.TARGET_LABELS
        for rule in monitoring.recordings():
            with self.subTest(rule["record"]):
                self.assertEqual(set(rule), {"record", "expr"})
                self.assertRegex(rule["record"], "^[a-z_]+:muster_[a-z_]+:([a-z0-9]+_)*(rate5m|max|min)$")
                self.assertLessEqual(monitoring.level(rule["record"]), labels)
                metric = rule["record"].split(":")[1]
                self.assertTrue(metric in known or metric in RECORDED_ALONE, metric)

    def test_records_are_of_metrics_and_labels_of_the_catalogue_or_of_earlier_records(self):
        series = {**monitoring.catalogue()}
        for rule in monitoring.recordings():
            for name, matchers in monitoring.selectors(rule["expr"]):
                self.assertIn(name, series)
                self.assertLessEqual(monitoring.matched_labels(matchers), series[name])
            self.assertNotIn(rule["record"], series)
            series[rule["record"]] = monitoring.level(rule["record"])

    def test_neither_dashboards_nor_alerts_need_them(self):
        names = {rule["record"] for rule in monitoring.recordings()}
        asked = [target["expr"] for board in monitoring.dashboards().values()
                 for panel in monitoring.panels(board) for target in panel["targets"]]
        for expression in asked + [rule["expr"] for rule in monitoring.alerts()]:
            self.assertEqual({name for name, _ in monitoring.selectors(expression)} & names, set())

    def test_the_table_of_the_page_has_each(self):
        page = (ROOT / "docs/operations/monitoring.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\| `(\w+:\w+:\w+)` \|", page, re.MULTILINE),
                         [rule["record"] for rule in monitoring.recordings()])


class AlertTest(unittest.TestCase):
    def each(self):
        for rule in monitoring.alerts():
            with self.subTest(rule["alert"]):
                yield rule

    def test_each_has_a_severity_and_texts(self):
        for rule in self.each():
            self.assertRegex(rule["alert"], "^Muster[A-Z]")
            self.assertIn(rule["labels"]["severity"], SEVERITIES)
            self.assertEqual(set(rule["annotations"]), {"summary", "description", "runbook_url"})
            for text in ("summary", "description"):
                self.assertRegex(rule["annotations"][text], r"\.$")

    def test_names_are_different(self):
        names = [rule["alert"] for rule in monitoring.alerts()]
        self.assertEqual(len(set(names)), len(names))

    def test_each_has_a_runbook_of_its_own_with_all_sections(self):
        urls = [rule["annotations"]["runbook_url"] for rule in monitoring.alerts()]
        self.assertEqual(len(set(urls)), len(urls))
        for rule in self.each():
            url = rule["annotations"]["runbook_url"]
            self.assertRegex(url, r"^docs/operations/runbooks/[a-z_]+\.md$")
            text = (ROOT / url).read_text(encoding="utf-8")
            self.assertEqual(re.findall("^# (.*)$", text, re.MULTILINE), [rule["alert"]])
            self.assertEqual(re.findall("^## (.*)$", text, re.MULTILINE), SECTIONS)

    def test_each_runbook_has_an_alert(self):
        pages = {str(page.relative_to(ROOT)) for page in (ROOT / "docs/operations/runbooks").glob("*.md")}
        self.assertEqual(pages, {rule["annotations"]["runbook_url"] for rule in monitoring.alerts()})

    def test_the_table_of_the_page_has_each_with_its_severity_and_runbook(self):
        page = (ROOT / "docs/operations/monitoring.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| \[(Muster\w+)\]\(runbooks/(\w+)\.md\) \| (\w+) \|", page, re.MULTILINE)
        self.assertEqual(rows, [
            (rule["alert"], re.search(r"(\w+)\.md$", rule["annotations"]["runbook_url"])[1],
             rule["labels"]["severity"]) for rule in monitoring.alerts()])

    @functools.lru_cache(maxsize=None)
    def help_of(self, words):
        done = subprocess.run([monitoring.program("MUSTER"), *words, "--help"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, f"muster {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def test_commands_that_pages_name_are_there_with_their_options(self):
        monitoring.program("MUSTER")
        pages = [*(ROOT / "docs/operations/runbooks").glob("*.md"), ROOT / "docs/operations/monitoring.md",
                 PageTest.PAGE]
        texts = [(page.name, page.read_text(encoding="utf-8")) for page in pages]
        texts += [(rule["alert"], "\n".join(re.findall("muster (?:doctor|[a-z]+ [a-z]+)(?: --[a-z]+)?",
                                                       rule["annotations"]["description"])))
                  for rule in monitoring.alerts()]
        count = 0
        for name, text in texts:
            commands = COMMAND.findall(text) + re.findall(r"`(muster [a-z][^`]*)`", text)
            for command in commands:
                words = command.partition("#")[0].split()[1:]
                verbs = tuple(words[:1 if words[0] in ("doctor", "cost", "report", "up", "run") else 2])
                with self.subTest(name, command=command):
                    shown = self.help_of(verbs)
                    self.assertIn(f"Usage: muster {' '.join(verbs)} ", shown)  # else it is the parent's
                    for option in (word for word in words if word.startswith("-")):
                        self.assertRegex(shown, rf"(?<![\w-]){re.escape(option)}(?![\w-])")
                    count += 1
        print(f"{count} commands of {len(pages)} pages and of the alerts", file=sys.stderr)
        self.assertGreater(count, 50)

    def test_texts_name_only_labels_that_the_alert_has(self):
        tests = monitoring.RULES_TEST.read_text(encoding="utf-8")
        for rule in self.each():
            fired = re.search(rf'ALERTS\{{alertname="{rule["alert"]}",([^}}]*)\}}\', value', tests)
            self.assertIsNotNone(fired, "no test has it fire")
            labels = monitoring.matched_labels(fired[1])
            for text in rule["annotations"].values():
                self.assertLessEqual(set(re.findall(r"\$labels\.(\w+)", text)), labels)


class GeneratedTest(unittest.TestCase):
    def test_the_dashboard_and_the_copies_in_the_chart_are_current(self):
        done = subprocess.run([sys.executable, ROOT / "scripts/make_dashboards", "--check"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_chart_has_a_copy_of_every_dashboard(self):
        for path in monitoring.DASHBOARDS.glob("*.json"):
            copy = ROOT / "helm/muster/dashboards" / path.name
            self.assertEqual(copy.read_bytes(), path.read_bytes())
        for copy, rules in (("alerts", monitoring.RULES), ("recording", monitoring.RECORDING)):
            self.assertEqual((ROOT / f"helm/muster/{copy}.yaml").read_bytes(), rules.read_bytes())


if __name__ == "__main__":
    monitoring.main()
