# SPDX-License-Identifier: Apache-2.0
"""A disk that is full, and one that cannot be written (small_disk.py)."""

import json
import re
import shutil
import signal

import harness
from harness import RETAIL_JOB, MusterTest, retail_input
from small_disk import SmallDisk, enter_a_namespace

DISK_BYTES = 64 << 20  # RocksDB sets space aside for its logs, as far as there is some
ROWS = 100_000
# From a disk without room to a disk with room for a part of the batch; more of it where the queue
# holds the content, too.
FREE_KIBIBYTES = [0, 60, 120, 300, 1000, 2500]
FREE_FOR_CONTENT = 1000

# Fills the disk before its first answer, once: all items are queued by then, and no result has reached the report, so
# that the queue is all that fails.
FILLING_JOB = """
name: filling
input: {format: lines}
item: {transactions: 10}
handler: {command: [python3, fill.py]}
groups:
  - {name: by_line, keys: [line], measures: {n: int}}
"""
FILLING_HANDLER = """
import json, os, sys
fill, ballast = sys.argv[1:]
for line in sys.stdin:
    item = json.loads(line)
    if os.path.exists(fill):
        os.remove(fill)
        with open(ballast, "wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                pass
    # More than what the last page of a file may still take.
    rows = [{"line": str(n) + 100 * "x", "n": 1} for n in range(100)]
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups": {"by_line": rows}}), flush=True)
"""


class DiskTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.disk = SmallDisk(self.folder / "disk", DISK_BYTES)
        self.addCleanup(self.disk.unmount)
        self.data_dir = self.disk.path / "data"
        self.input = retail_input(ROWS)

    def look(self, *arguments):
        return self.muster(*arguments, "--data-dir", self.data_dir)

    def assert_ends_for_want_of_room(self, done):
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(done.stdout, "")
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("muster: "), last)
        self.assertIn(str(self.data_dir), last)
        self.assertRegex(last, "No space left on device|disk is full")

    def assert_acknowledged_is_there(self, stderr):
        """Checks that everything is stored that the run's progress reported as queued and
        committed."""
        said = re.findall(r"queued ([\d,]+) · processed [\d,]+ · committed ([\d,]+)", stderr)
        if not said:
            return
        queued, committed = (int(number.replace(",", "")) for number in said[-1])
        stats = json.loads(self.look("queue", "stats", "retail-in-0", "-o", "json").stdout)
        self.assertGreaterEqual(stats[0]["total_in"] * 500, queued)
        [batch] = json.loads(self.look("batch", "list", "-o", "json").stdout)
        self.assertGreaterEqual(batch["transactions"], queued)
        self.assertGreaterEqual(batch["aggregated"], committed)

    def test_a_full_disk_ends_the_run_and_room_lets_it_end_exactly(self):
        for kibibytes in FREE_KIBIBYTES:
            with self.subTest(free_kibibytes=kibibytes):
                shutil.rmtree(self.data_dir, ignore_errors=True)
                self.disk.leave_free(kibibytes)
                job = self.write("job.yaml", RETAIL_JOB.read_text().replace(
                    "max_attempts: 5", "max_attempts: 5, content: inline" if kibibytes >= FREE_FOR_CONTENT
                    else "max_attempts: 5"))
                for _ in range(2):  # the second finds what the first left
                    done = self.muster(*self.run_arguments(self.input, job=job))
                    self.assert_ends_for_want_of_room(done)
                    self.assert_acknowledged_is_there(done.stderr)
                checked = self.look("queue", "check")
                self.assertIn(checked.returncode, (0, 1), checked.stdout)
                if checked.returncode == 1:
                    self.assertIn("no data in directory", checked.stderr)
                self.disk.make_room()
                code, result, errors = self.run_job(self.input, job=job)
                self.assertEqual(code, 0, errors)
                self.assertEqual((result["transactions"], result["aggregated"]), (ROWS, ROWS))
                self.assert_report_is_the_direct_sum(self.input, result["batch"])
                self.assert_receipt_holds(result["batch"])

    def test_a_queue_that_takes_no_more_results_ends_the_run(self):
        self.disk.leave_free(30_000)  # RocksDB sets some space aside, and none for this queue's log
        ballast, fill = self.disk.path / "more", self.write("fill", "")
        self.write("fill.py", FILLING_HANDLER)
        job = self.write("filling.yaml", FILLING_JOB.replace("fill.py", f"fill.py, {fill}, {ballast}"))
        numbers = self.write("numbers.txt", "".join(f"{n}\n" for n in range(40)))
        self.assert_ends_for_want_of_room(self.muster(*self.run_arguments(numbers, "--threads", 1, job=job)))
        self.assertFalse(fill.exists())
        ballast.unlink()
        code, result, errors = self.run_job(numbers, job=job)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["aggregated"], 40)
        self.assert_receipt_holds(result["batch"])

    def looks(self):
        """Returns the output of each read-only command."""
        said = {}
        for command in (["report", 1], ["report", 1, "-o", "json"], ["queue", "list"],
                        ["queue", "stats", "retail-in-0", "-o", "json"], ["batch", "list"],
                        ["batch", "get", 1], ["cost"], ["queue", "check"]):
            done = self.look(*command)
            # Of a batch that was killed no receipt proves the report.
            allowed = (0, 1) if command[0] == "report" else (0,)
            self.assertIn(done.returncode, allowed, f"{command}: {done.stderr}")
            # Ages grow between two looks, and with them the columns of a table.
            timeless = re.sub(r'"oldest_age_seconds":[^}]*|\b(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b', "",
                              done.stdout)
            said[str(command)] = re.sub(" +", " ", timeless)
        return said

    def assert_refused_in_one_line(self, done):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\Amuster: [^\n]*[Rr]ead-only[^\n]*\n\Z")
        self.assertIn(str(self.disk.path), done.stderr)

    def is_looked_at_where_nothing_can_be_written(self):
        before = self.looks()
        self.disk.remount("ro")
        self.assertEqual(self.looks(), before)
        self.assert_refused_in_one_line(self.muster(*self.run_arguments(self.input)))
        self.assert_refused_in_one_line(self.look("queue", "redrive", "retail-in-0"))

    def test_a_finished_batch_can_be_read_where_nothing_can_be_written(self):
        self.assertEqual(self.run_job(self.input)[0], 0)
        self.is_looked_at_where_nothing_can_be_written()
        self.assert_receipt_holds(1)

    def test_a_batch_that_was_killed_can_be_read_where_nothing_can_be_written(self):
        self.assertEqual(self.run_job(self.retail_rows((1, "2", "7", "France")))[0], 0)
        process = self.start_run(self.input, "--threads", 1)
        for line in process.stderr:
            if "begins" in line:
                break
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.is_looked_at_where_nothing_can_be_written()

    def test_a_new_data_directory_is_refused_where_nothing_can_be_written(self):
        self.disk.remount("ro")
        self.assert_refused_in_one_line(self.muster(*self.run_arguments(self.input)))


if __name__ == "__main__":
    enter_a_namespace()
    harness.main()
