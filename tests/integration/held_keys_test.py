# SPDX-License-Identifier: Apache-2.0
"""Jobs with `on_poison: hold`: what waits behind a dead letter, and how it goes on."""

import json
import os
import subprocess
import sys
import time

import harness
from mesh import NATS_SERVERS, Mesh, Program, free_address
from mesh_case import MeshTest
from ordered_test import SEED, Calls, OrderedCase

KEYS = 1000
LINES = 4  # of each key, in the first batch; the second one has one more
PARTITIONS = 4
RELEASED = {f"k{key}": key % LINES for key in range(20)}  # by key: the line that is poison
REDRIVEN = {f"k{key}": key % LINES for key in range(20, 40)}
POISON = {**RELEASED, **REDRIVEN}
# What comes before the poison of each key, and what comes behind it.
BEFORE = sum(POISON.values())
BEHIND = sum(LINES - 1 - line for line in POISON.values())
WELL = (KEYS - len(POISON)) * LINES

JOB = """
name: payments
input: {{format: csv, columns: [key, n]}}
item: {{transactions: 1}}
order_by: key
on_poison: {on_poison}
handler: {{linked: witness}}
queue: {{partitions: {partitions}, max_attempts: 6}}
groups:
  - {{name: total, keys: [all], measures: {{lines: int}}}}
"""


class HeldKeysCase(OrderedCase):
    def setUp(self):
        self.poison_path = None
        super().setUp()

    def make_log_path(self):
        path = super().make_log_path()
        self.poison_path = path + "-poison"
        os.environ["WITNESS_POISON"] = self.poison_path
        self.write_poison(POISON)
        return path

    def write_poison(self, poison):
        """Decides what the handler fails at, from its next call on."""
        anew = self.poison_path + ".new"
        with open(anew, "w", encoding="ascii") as file:
            file.writelines(f"{key} {line}\n" for key, line in poison.items())
        os.replace(anew, self.poison_path)

    def assert_order(self, last_n, dead=(), skipped=None):
        mistakes = Calls(self.log_path).check(last_n, set(dead), skipped or {})
        self.assertEqual(mistakes[:20], [], f"seed {SEED}, {len(mistakes)} mistakes")


class HeldKeysOnMesh:
    """The scenario; a class says how a mesh is made, and how some of it dies and comes back."""

    def apply(self, on_poison="hold"):
        self.answer("job", "apply", self.write(
            "payments.yaml", JOB.format(on_poison=on_poison, partitions=PARTITIONS)))

    def batch(self, number):
        """The batch, with its counts: while a controller is away, it is listed without."""
        end = time.monotonic() + harness.TIMEOUT_SECONDS
        while True:
            [found] = [b for b in self.answer("batch", "list") if b["batch"] == number]
            if found["aggregated"] is not None:
                return found
            self.assertLess(time.monotonic(), end, f"nothing is counted: {found}")
            time.sleep(0.1)

    def await_counts(self, number, aggregated, dead_lettered):
        end = time.monotonic() + harness.TIMEOUT_SECONDS
        while True:
            batch = self.batch(number)
            counts = (batch["aggregated"], batch["dead_lettered"])
            if counts == (aggregated, dead_lettered):
                return batch
            self.assertLessEqual(counts[0], aggregated, f"too much is counted: {batch}")
            self.assertLess(time.monotonic(), end, f"{batch}, {aggregated} {dead_lettered}")
            time.sleep(0.1)

    def await_share(self, number, aggregated):
        end = time.monotonic() + harness.TIMEOUT_SECONDS
        while self.batch(number)["aggregated"] < aggregated:
            self.assertLess(time.monotonic(), end, "the batch does not go on")
            time.sleep(0.05)

    def held(self):
        """By key: its entry, with the queue that holds it."""
        return {entry["key"]: {**entry, "queue": f"payments-in-{partition}"}
                for partition in range(PARTITIONS)
                for entry in self.answer("queue", "held", f"payments-in-{partition}")}

    def of_each_queue(self, held, keys):
        for partition in range(PARTITIONS):
            queue = f"payments-in-{partition}"
            names = [key for key in keys if held[key]["queue"] == queue]
            if names:
                yield queue, [word for key in names for word in ("--key", key)], names

    def submit_lines(self, name, first_n, each):
        data = self.content(f"{name}.csv", KEYS, first_n, each)
        return self.start_submit("payments", data, request_id=name)

    def end_of(self, submission, code):
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, code, out + errors)
        return json.loads(out)

    def test_a_dead_letter_holds_up_its_own_key_until_it_is_released_or_redriven(self):
        self.apply()
        first = self.submit_lines("first", 0, LINES)
        self.await_batch(1, lambda batch: True)
        dead = []
        self.await_share(1, WELL // 3)
        dead += self.kill_and_restart()
        self.await_counts(1, WELL + BEFORE, len(POISON))
        held = self.held()
        self.assertEqual({key: entry["batch"] for key, entry in held.items()},
                         dict.fromkeys(POISON, 1))
        for entry in held.values():
            self.assertIn("attempt 6 of 6 ", entry["cause"])  # and it failed, or was killed
        # The next owner of the partitions does not let the held keys go on, either.
        dead += self.kill_and_restart()
        second = self.submit_lines("second", LINES, 1)
        next_batch = self.await_second_batch()
        self.await_counts(next_batch, KEYS - len(POISON), 0)
        last = {f"k{key}": LINES for key in range(KEYS)}
        self.assert_order({key: POISON.get(key, n + 1) - 1 for key, n in last.items()}, dead)
        self.assert_they_say_what_they_wait_for(1, next_batch)
        self.assertEqual(self.held().keys(), held.keys())

        for queue, words, names in self.of_each_queue(held, RELEASED):
            released = self.answer("queue", "release", queue, *words)
            self.assertEqual(sorted(entry["key"] for entry in released), sorted(names))
        behind = sum(LINES - 1 - line for line in RELEASED.values())
        self.await_counts(1, WELL + BEFORE + behind, len(POISON))
        self.await_counts(next_batch, KEYS - len(REDRIVEN), 0)
        self.assertEqual(self.held().keys(), REDRIVEN.keys())

        # A redriven item that is given up again holds its key again.
        [(queue, words, names)] = list(self.of_each_queue(held, list(REDRIVEN)[:1]))
        since = time.time()
        self.assertEqual(self.answer("queue", "redrive", queue, *words)["messages"], 1)
        self.await_dead_letter(queue, names[0], since)
        self.assert_order({key: REDRIVEN.get(key, n + 1) - 1 for key, n in last.items()}, dead,
                          RELEASED)

        self.write_poison({})
        for queue, words, names in self.of_each_queue(held, REDRIVEN):
            redriven = self.answer("queue", "redrive", queue, *words)
            self.assertEqual(redriven["messages"], len(names))
        dead += self.kill_and_restart()
        result = self.end_of(first, 3)
        self.assertEqual((result["aggregated"], result["dead_lettered"]),
                         (KEYS * LINES - len(RELEASED), len(RELEASED)))
        result = self.end_of(second, 0)
        self.assertEqual((result["aggregated"], result["dead_lettered"]), (KEYS, 0))
        self.assert_order(last, dead, RELEASED)
        self.await_none_held()
        for number, lines in ((1, KEYS * LINES - len(RELEASED)), (next_batch, KEYS)):
            [group] = self.report(number)["groups"]
            self.assertEqual([int(row["lines"]) for row in group["rows"]], [lines])

    def await_second_batch(self):
        """Its number: a restart leaves gaps between numbers."""
        end = time.monotonic() + harness.TIMEOUT_SECONDS
        while len(batches := self.answer("batch", "list")) < 2:
            self.assertLess(time.monotonic(), end, batches)
            time.sleep(0.05)
        return max(batch["batch"] for batch in batches)

    def assert_they_say_what_they_wait_for(self, *batches):
        for number in batches:
            # Only once nothing of it has been counted for some seconds.
            waiting = self.await_batch(number, lambda batch: "problem" in batch)
            self.assertRegex(waiting["problem"],
                             r"40 keys are held behind dead letters in local/payments-in-0 and 3 "
                             r"more queues: `muster queue held QUEUE` shows them")
        doctor = self.ask("doctor")
        self.assertRegex(doctor.stdout + doctor.stderr, r"muster queue held ")

    def await_dead_letter(self, queue, key, since):
        end = time.monotonic() + harness.TIMEOUT_SECONDS
        while True:
            [entry] = [e for e in self.answer("queue", "held", queue) if e["key"] == key]
            if entry["message"]:
                return
            self.assertLess(time.monotonic(), end, f"{entry} since {since}")
            time.sleep(0.05)

    def await_none_held(self):
        end = time.monotonic() + harness.TIMEOUT_SECONDS
        while held := self.held():
            self.assertLess(time.monotonic(), end, held)
            time.sleep(0.1)


class HeldKeysMeshTest(HeldKeysOnMesh, HeldKeysCase, MeshTest):
    def make_mesh(self):
        mesh = Mesh(self.folder, self.nats_server, self.nats_servers)
        mesh.start_processors = lambda: [
            mesh.start_role("fragile_processor", None, "--threads", 2) for _ in range(3)]
        return mesh

    def kill_and_restart(self):
        victim = self.random.choice(self.mesh.processors)
        dead = victim.process.pid
        victim.kill()
        victim.restart()
        return [dead]


class HeldKeysOtherServerTest(HeldKeysMeshTest):
    """The same test on the last server, because servers differ."""

    nats_server = NATS_SERVERS[-1]

    def setUp(self):
        if len(NATS_SERVERS) == 1:
            self.skipTest("MUSTER_NATS_SERVERS names one server only")
        super().setUp()


class OneProcess:
    """`muster up` on RocksDB, with a handler that writes down its calls."""

    def __init__(self, folder):
        self.server = self.reporter = free_address()
        self.programs = [Program(
            [os.environ["FRAGILE_MUSTER"], "up", "--listen", self.server, "--data-dir",
             folder / "data", "--threads", 4], "msg=ready")]

    def start(self):
        self.programs[0].await_ready()

    def kill(self):
        self.programs[0].kill()


class HeldKeysUpTest(HeldKeysOnMesh, HeldKeysCase, MeshTest):
    def make_mesh(self):
        return OneProcess(self.folder)

    def kill_and_restart(self):
        [up] = self.mesh.programs
        dead = up.process.pid
        up.kill()
        up.restart()
        return [dead]


class HeldKeysRunTest(HeldKeysCase):
    def run_payments(self, data):
        job = self.write("payments.yaml", JOB.format(on_poison="hold", partitions=2))
        return subprocess.run(
            [os.environ["FRAGILE_MUSTER"], "run", str(job), "--input", str(data), "--data-dir",
             str(self.data_dir), "--threads", "4", "-o", "json"],
            capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS)

    def on_queue(self, verb, partition, *more):
        done = self.muster("queue", verb, f"payments-in-{partition}", *more, "-o", "json",
                           "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_run_ends_when_all_that_is_left_is_held_and_goes_on_after_a_decision(self):
        data = self.content("in.csv", 100, 0, LINES)
        for _ in range(2):  # the same command changes nothing
            done = self.run_payments(data)
            self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
            self.assertRegex(
                done.stderr,
                r"muster: batch 1 waits: 40 keys are held behind dead letters in local/payments-in-0 "
                r"and 1 more queue: `muster queue held QUEUE --data-dir .*` shows them, .*; then run "
                r"the same command again to go on with batch 1\n")
        shown = self.muster("batch", "get", "1", "-o", "json", "--data-dir", self.data_dir)
        self.assertRegex(json.loads(shown.stdout)["problem"],
                         r"40 keys are held behind dead letters in local/payments-in-0 and 1 more queue: ")
        last = dict.fromkeys((f"k{key}" for key in range(100)), LINES - 1)
        self.assert_order({key: POISON.get(key, n + 1) - 1 for key, n in last.items()})
        self.write_poison({})
        for partition in range(2):
            for entry in self.on_queue("held", partition):
                verb = "release" if entry["key"] in RELEASED else "redrive"
                self.on_queue(verb, partition, "--key", entry["key"])
        done = self.run_payments(data)
        self.assertEqual(done.returncode, 3, done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["aggregated"], result["dead_lettered"]),
                         (100 * LINES - len(RELEASED), len(RELEASED)))
        self.assert_order(last, skipped=RELEASED)
        self.assertEqual([self.on_queue("held", partition) for partition in range(2)], [[], []])


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    harness.main()
