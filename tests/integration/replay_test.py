# SPDX-License-Identifier: Apache-2.0
"""muster replay: scaling policies on a trace, from the outside."""

import csv
import io
import json
import re
import subprocess
import sys
import xml.dom.minidom

import harness
from harness import ROOT, MusterTest

FIELDS = ["policy", "settings", "items", "violations", "violation_ratio", "p50_s", "p95_s", "p99_s",
          "max_s", "replica_seconds", "work_seconds", "cost_over_work", "cost_over_oracle",
          "actions", "decision_hash"]
WORKERS = ["--service-time", "25ms", "--cold-start", "30s", "--sla", "300s"]
RULES = """
targets:
  billing: {kind: dry-run, name: processor, queues: [in-0], sla: {max: 300s}, max: 40}
constraints:
- {name: default, rank: 1, target: billing, range: [2, 20]}
"""


class ReplayTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.trace = self.file("bursts.csv", "time,count\n0,60000\n3000,40000\n")

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def replay(self, *more, trace=None, workers=WORKERS):
        return self.muster("replay", "--trace", trace or self.trace, "--period", "0s", *workers,
                           *more)

    def rows(self, *more, **others):
        done = self.replay("-o", "json", *more, **others)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_json_has_the_documented_fields_and_sound_figures(self):
        rows = self.rows()
        self.assertEqual([row["policy"] for row in rows], ["deadline", "keda", "oracle"])
        for row in rows:
            self.assertEqual(list(row), FIELDS)
            self.assertEqual(row["items"], 100000)
            self.assertAlmostEqual(row["work_seconds"], 2500)
            self.assertAlmostEqual(row["cost_over_work"],
                                   row["replica_seconds"] / row["work_seconds"])
            self.assertRegex(row["decision_hash"], "^[0-9a-f]{32}$")
            self.assertLessEqual(row["p50_s"], row["p95_s"])
            self.assertLessEqual(row["p99_s"], row["max_s"])
        deadline, keda, oracle = rows
        self.assertEqual(deadline["violations"], 0)
        self.assertEqual(oracle["cost_over_oracle"], 1)
        # Each burst is spread over 300 s, and each replica has a cold start.
        self.assertAlmostEqual(oracle["replica_seconds"], 2500 + 30 * (5 + 10 / 3), places=6)
        self.assertGreaterEqual(deadline["cost_over_oracle"], 1)
        self.assertLess(deadline["replica_seconds"], keda["replica_seconds"])

    def test_the_same_seed_says_the_same_and_service_by_the_item_agrees_with_the_liquid(self):
        items = ["--service", "lognormal", "--cold-start-shape", "exponential", "--policy",
                 "deadline"]
        first = self.rows("--seed", 5, *items)
        self.assertEqual(first, self.rows("--seed", 5, *items))
        self.assertNotEqual(first[0]["decision_hash"],
                            self.rows("--seed", 6, *items)[0]["decision_hash"])
        [fluid] = self.rows("--policy", "fixed:12")
        [by_item] = self.rows("--policy", "fixed:12", "--service", "fixed")
        self.assertAlmostEqual(fluid["p50_s"], by_item["p50_s"], delta=0.5)

    def test_table_and_csv_say_the_same_as_json(self):
        [row] = self.rows("--policy", "keda:mud/2:fast", "--seeds", 3)
        self.assertEqual(row["items"], 300000)
        done = self.replay("--policy", "keda:mud/2:fast", "--seeds", 3, "-o", "csv")
        [cells] = csv.DictReader(io.StringIO(done.stdout))
        self.assertEqual(list(cells), FIELDS)
        self.assertEqual(float(cells["replica_seconds"]), row["replica_seconds"])
        table = self.replay("--policy", "keda:mud/2:fast,oracle").stdout
        self.assertIn("VIOLATIONS", table)
        self.assertEqual(len(table.splitlines()), 3)

    def test_the_plot_is_a_picture_that_needs_nothing_else(self):
        self.replay("--plot", self.folder / "out.svg", "--policy", "deadline,keda,oracle")
        text = (self.folder / "out.svg").read_text(encoding="utf-8")
        picture = xml.dom.minidom.parseString(text)
        self.assertEqual(picture.documentElement.tagName, "svg")
        # One line of arrivals, and three policies in each of three panels.
        lines = picture.getElementsByTagName("polyline")
        self.assertEqual(len(lines), 1 + 3 * 3)
        self.assertEqual(len({line.getAttribute("stroke-dasharray") for line in lines}), 3)
        words = [text.firstChild.data for text in picture.getElementsByTagName("text")]
        for word in ("deadline", "keda", "oracle", "backlog: items"):
            self.assertIn(word, words)
        self.assertEqual(re.findall(r"(?:href|url\(|@import)", text), [])

    def test_rules_hold_the_deadline_policy(self):
        rules = self.file("rules.yaml", RULES)
        [free] = self.rows("--policy", "deadline")
        workers = ["--service-time", "25ms", "--cold-start", "30s"]  # the rules have the SLA
        [ruled] = self.rows("--policy", "deadline", "--rules", rules, workers=workers)
        self.assertIn("rules", ruled["settings"])
        # At least two replicas run all the time.
        self.assertGreater(ruled["replica_seconds"], 2 * 3000)
        self.assertGreater(ruled["replica_seconds"], free["replica_seconds"])

    def test_wrong_usage_is_code_2(self):
        for arguments in (["--service-time", "25ms", "--sla", "300s"],  # no trace
                          ["--trace", self.trace, "--sla", "300s"],
                          ["--trace", self.trace, "--service-time", "25ms"],
                          ["--trace", self.trace, *WORKERS, "--service-time", "fast"],
                          ["--trace", self.trace, *WORKERS, "--service", "magic"],
                          ["--trace", self.trace, *WORKERS, "--from", "yesterday"],
                          ["--trace", self.trace, *WORKERS, "--outage", "60s"],
                          ["--trace", self.trace, "--recording", "x", *WORKERS]):
            done = self.muster("replay", *arguments)
            self.assertEqual(done.returncode, 2, arguments)

    def test_wrong_input_is_code_1_with_the_reason(self):
        broken = self.file("broken.csv", "time,count\n0,5\n1,-2\n")
        done = self.replay(trace=broken)
        self.assertEqual(done.returncode, 1)
        self.assertIn("broken.csv' line 3: the count -2 is negative", done.stderr)
        for options, reason in ((["--policy", "magic"], "policy 'magic'"),
                                (["--policy", "fixed"], "fixed:8"),
                                (["--min", "5", "--max", "4"], "min is larger than max"),
                                (["--seeds", "0"], "seeds"),
                                (["--tasks", "0"], "tasks"),
                                (["--rate-factor", "0"], "rate factor"),
                                (["--lost-triggers", "2"], "lost triggers"),
                                (["--plot", "/nowhere/x.svg"], "cannot be written"),
                                (["--rules", "none.yaml"], "none.yaml")):
            done = self.replay(*options)
            self.assertEqual(done.returncode, 1, options)
            self.assertIn(reason, done.stderr)
        self.assertEqual(self.replay("--sla", "0s").returncode, 2)

    def test_a_recording_is_decided_anew(self):
        recording = self.folder / "run.jsonl"
        options = {"sla_ns": 300 * 10**9, "aim_ns": None, "patience": 0.5, "hold": 1.0,
                   "loss_after": 3, "loss_keep_current": True, "loss_floor": 0,
                   "stale_after_ns": 120 * 10**9, "rate_risk": 0.01, "forecast": False}
        head = {"muster_recording": 1, "target": "billing", "policy": options}
        recording.write_text(json.dumps(head) + "\n", encoding="utf-8")
        done = self.muster("replay", "--recording", recording, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout),
                         {"target": "billing", "announcements": 0, "decisions": 0, "first_part": 1,
                          "same": True, "differences": 0, "first_difference": None})
        second = {"now": 0, "bounds": {"min": 0, "max": 9, "standby": 0}, "queues": [],
                  "fleet": {"ready": 0, "draining": 0, "parked": 0, "starting": [],
                            "idle_since": [], "tasks": 1, "max_tasks": 1},
                  "estimates": {"items_per_second": 40, "service_time_ns": 25000000,
                                "cold_start_ns": 0, "release_ns": 0, "cpu_share": 0,
                                "throttled_share": 0}}
        wrong = {"replicas": 7, "tasks": 1, "standby": 0, "binding": "deadline", "wanted": 7,
                 "deadline": None, "feasible": True, "needs": 0, "late_by_ns": 0, "finish": 0}
        with recording.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"see": second, "decide": wrong}) + "\n")
        done = self.muster("replay", "--recording", recording)
        self.assertEqual(done.returncode, 1)
        self.assertIn("line 2: the policy decides otherwise now", done.stderr)
        self.assertIn("replayed: ", done.stdout)


class BillingDayTest(MusterTest):
    def make(self, name, *options):
        path = self.folder / name
        subprocess.run([sys.executable, str(ROOT / "bench/scaling/make_billing_day"), *options,
                        str(path)], check=True, timeout=harness.TIMEOUT_SECONDS)
        return path.read_text(encoding="utf-8")

    def test_a_seed_makes_one_day_and_its_items_add_up(self):
        day = self.make("a.csv", "--seed", "4")
        self.assertEqual(day, self.make("b.csv", "--seed", "4"))
        self.assertNotEqual(day, self.make("c.csv", "--seed", "5"))
        rows = list(csv.DictReader(io.StringIO(day)))
        sizes = [int(row["count"]) for row in rows]
        self.assertEqual(sum(sizes), 3200000)
        self.assertGreaterEqual(min(sizes), 3000)
        self.assertLessEqual(max(sizes), 300000)
        self.assertEqual(rows, sorted(rows, key=lambda row: row["time"]))


if __name__ == "__main__":
    harness.main()
