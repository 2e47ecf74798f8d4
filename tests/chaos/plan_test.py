# SPDX-License-Identifier: Apache-2.0
"""The same seed draws the same plan, and the seeds of the gate have all of what an ordinary run has."""

import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

import checker
import plan
import repertoire
import workload

ORDINARY = repertoire.chosen("")
GATE = range(70, 90)  # the seeds of CMakeLists.txt


def faults_of(drawn):
    return [given["kind"] for _, action, given in drawn["steps"] if action == "begin"]


class PlanTest(unittest.TestCase):
    def test_the_same_seed_draws_the_same_plan_in_another_process(self):
        program = ("import json, plan, repertoire; "
                   "print(json.dumps(plan.draw(7, repertoire.chosen('all'), True)))")
        drawn = [subprocess.run([sys.executable, "-B", "-c", program], cwd=HERE, capture_output=True,
                                text=True, timeout=60, check=True,
                                env={"PYTHONPATH": str(HERE.parent / "integration"),
                                     "PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")]
        self.assertEqual(drawn[0], drawn[1])
        self.assertEqual(json.loads(drawn[0])["seed"], 7)

    def test_another_seed_draws_another_plan(self):
        self.assertNotEqual(plan.draw(1, ORDINARY, True)["steps"], plan.draw(2, ORDINARY, True)["steps"])

    def test_every_fault_that_begins_ends(self):
        for seed in range(200):
            open_faults = set()
            steps = plan.draw(seed, repertoire.ALL, True)["steps"]
            self.assertEqual([at for at, _, _ in steps], sorted(at for at, _, _ in steps))
            for _, action, given in steps:
                if action == "begin":
                    open_faults.add(given["number"])
                elif action == "end":
                    open_faults.remove(given["number"])
            self.assertEqual(open_faults, set())

    def test_the_gate_has_every_ordinary_fault_and_all_kinds_of_meshes(self):
        times = collections.Counter()
        for seed in GATE:
            drawn = plan.draw(seed, ORDINARY, True)
            times.update(faults_of(drawn))
            times.update(f"{part} {drawn['shape'][part]}" for part in ("nats", "content", "content_sent"))
        for kind in ORDINARY:
            self.assertGreater(times[kind.name], 0, kind.name)
        for part in ("nats 1", "nats 3", "content inline", "content reference", "content_sent True",
                     "content_sent False"):
            self.assertGreater(times[part], 0, part)

    def test_a_run_without_disks_of_its_own_fills_none(self):
        for seed in range(100):
            self.assertNotIn("full-disk", faults_of(plan.draw(seed, ORDINARY, False)))

    def test_what_muster_does_not_stand_is_left_out_with_a_sentence_why(self):
        left_out = [kind for kind in repertoire.ALL if kind not in ORDINARY]
        for kind in left_out:
            self.assertRegex(kind.known, r"^\w.* .*\w$")
        self.assertEqual(repertoire.chosen("all"), list(repertoire.ALL))
        self.assertEqual([kind.name for kind in repertoire.chosen("wipe-while-busy,kill")],
                         ["kill", "wipe-while-busy"])
        with self.assertRaisesRegex(ValueError, "no fault nonsense; there are kill,"):
            repertoire.chosen("nonsense")


class WorkloadTest(unittest.TestCase):
    KINDS = sorted({*plan.KINDS, "large held"})

    def test_content_is_a_function_of_its_description(self):
        batch = {"request": "march", "kind": "moody", "items": 4, "seed": 5}
        self.assertEqual(workload.items_of(batch), workload.items_of(dict(batch)))

    def test_only_the_last_item_is_short_and_odd_kinds_have_their_line(self):
        for seed in range(200):
            for kind in self.KINDS:
                items = workload.items_of({"request": "", "kind": kind, "items": 3, "seed": seed})
                self.assertEqual([len(item) for item in items[:-1]], [workload.LINES_PER_ITEM] * 2)
                self.assertIn(len(items[-1]), range(1, workload.LINES_PER_ITEM + 1))
                keys = {checker.key_and_amount(line)[0] for item in items for line in item}
                odd = {"rejects": "reject"}.get(kind, kind.rpartition(" ")[2])
                self.assertEqual(odd in keys, kind not in ("small", "large"), (seed, kind))


    def test_half_of_the_batches_have_items_that_travel_by_reference(self):
        chance = random.Random(1)
        sizes = collections.Counter()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "content"
            for number in range(200):
                batch = workload.draw_batch(chance, str(number), "small")
                workload.write_content(batch, path)
                size = sum(map(len, path.read_text().splitlines()[:workload.LINES_PER_ITEM]))
                sizes["short" if size < 200 else "padded" if 6_000 <= size <= 21_000 else size] += 1
        self.assertEqual(sorted(sizes), ["padded", "short"])
        self.assertGreater(min(sizes.values()), 60)


if __name__ == "__main__":
    unittest.main(verbosity=2)
