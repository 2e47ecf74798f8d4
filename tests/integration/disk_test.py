"""A disk that is full, and one that cannot be written: a tmpfs of a mount namespace of our own.

Ends with 77 (skipped) where the kernel allows no such namespace.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import harness
from harness import SKIPPED, MusterTest, retail_input

INSIDE = "MUSTER_TEST_IN_A_NAMESPACE"
DISK_BYTES = 64 << 20  # RocksDB sets space aside for its logs, as far as there is some
ROWS = 100_000
# From a disk without room to a disk with room for a part of the batch.
FREE_KIBIBYTES = [0, 60, 120, 300, 1000, 2500]


def enter_a_namespace():
    """Runs this program again inside a namespace where it may mount; returns only there."""
    if INSIDE in os.environ:
        return
    for flags in ("-m", "-Urm"):
        able = subprocess.run(["unshare", flags, "mount", "-t", "tmpfs", "none", "/mnt"],
                              capture_output=True, text=True, timeout=30)
        if able.returncode == 0:
            os.environ[INSIDE] = "yes"
            os.execvp("unshare", ["unshare", flags, sys.executable, *sys.argv])
    print(f"skipped: no mount namespace: {able.stderr.strip()}", flush=True)
    sys.exit(SKIPPED)


class DiskTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        self.mount("-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", self.disk)
        self.addCleanup(subprocess.run, ["umount", "--lazy", str(self.disk)], check=True)
        self.data_dir = self.disk / "data"
        self.input = retail_input(ROWS)

    @staticmethod
    def mount(*arguments):
        subprocess.run(["mount", *map(str, arguments)], check=True, timeout=30)

    def leave_free(self, kibibytes):
        with (self.disk / "ballast").open("wb") as ballast:
            ballast.write(b"\0" * (DISK_BYTES - (kibibytes << 10)))

    def make_room(self):
        (self.disk / "ballast").unlink()

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
                self.leave_free(kibibytes)
                for _ in range(2):  # the second finds what the first left
                    done = self.muster(*self.run_arguments(self.input))
                    self.assert_ends_for_want_of_room(done)
                    self.assert_acknowledged_is_there(done.stderr)
                checked = self.look("queue", "check")
                self.assertIn(checked.returncode, (0, 1), checked.stdout)
                if checked.returncode == 1:
                    self.assertIn("no data in directory", checked.stderr)
                self.make_room()
                code, result, errors = self.run_job(self.input)
                self.assertEqual(code, 0, errors)
                self.assertEqual((result["transactions"], result["aggregated"]), (ROWS, ROWS))
                self.assert_report_is_the_direct_sum(self.input, result["batch"])
                self.assert_receipt_holds(result["batch"])

    def looks(self):
        """Returns the output of each read-only command."""
        said = {}
        for command in (["report", 1], ["report", 1, "-o", "json"], ["queue", "list"],
                        ["queue", "stats", "retail-in-0", "-o", "json"], ["batch", "list"],
                        ["batch", "get", 1], ["cost"], ["queue", "check"]):
            done = self.look(*command)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stderr}")
            # Ages grow between two looks, and with them the columns of a table.
            timeless = re.sub(r'"oldest_age_seconds":[^}]*|\b(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b', "",
                              done.stdout)
            said[str(command)] = re.sub(" +", " ", timeless)
        return said

    def assert_refused_in_one_line(self, done):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\Amuster: [^\n]*[Rr]ead-only[^\n]*\n\Z")
        self.assertIn(str(self.disk), done.stderr)

    def is_looked_at_where_nothing_can_be_written(self):
        before = self.looks()
        self.mount("-o", "remount,ro", self.disk)
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
        self.mount("-o", "remount,ro", self.disk)
        self.assert_refused_in_one_line(self.muster(*self.run_arguments(self.input)))


if __name__ == "__main__":
    enter_a_namespace()
    harness.main()
