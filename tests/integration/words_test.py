# SPDX-License-Identifier: Apache-2.0
"""The output of muster: its words, its streams and its exit codes."""

import contextlib
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess

import harness
from harness import HEADER, MUSTER, ROOT, MusterTest, retail_input


class OutputTest(MusterTest):
    def setUp(self):
        super().setUp()
        self.run_job(self.retail_rows((1, "2.50", "7", "France")))

    def test_a_report_that_cannot_be_written_is_an_error(self):
        for command in (["report", "1"], ["batch", "receipt", "1"], ["batch", "list"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([MUSTER, *command, "--data-dir", str(self.data_dir)],
                                      stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=harness.TIMEOUT_SECONDS)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("could not be written", done.stderr)

    def test_no_log_line_goes_into_a_file_of_musters_own(self):
        data = self.retail_rows((1, "2.50", "7", "France"), name="other.csv")
        command = [MUSTER, "run", str(harness.RETAIL_JOB), "--input", str(data), "--data-dir", str(self.data_dir)]
        subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], timeout=harness.TIMEOUT_SECONDS, check=False)
        locks = list(self.data_dir.glob("*/LOCK"))
        self.assertGreater(len(locks), 1)
        self.assertEqual([lock.name for lock in locks if lock.stat().st_size > 0], [])
        self.assertEqual(self.muster("check", "--data-dir", self.data_dir).returncode, 0)

    def test_an_input_that_cannot_be_read_is_not_an_empty_one(self):
        here = ["--data-dir", str(self.folder / "streams")]
        self.assertEqual(self.muster("stream", "create", "homes", *here).returncode, 0)
        append = [MUSTER, "stream", "append", "homes", *here]
        for redirect, why in (("< /", "Is a directory"), ("<&-", "Bad file descriptor")):
            done = subprocess.run(["sh", "-c", f'exec "$@" {redirect}', "sh", *append], capture_output=True, text=True,
                                  timeout=harness.TIMEOUT_SECONDS)
            self.assertEqual((done.returncode, done.stdout), (1, ""), redirect)
            self.assertIn(why, done.stderr)
        done = subprocess.run(append, input="", capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, "appended: 0 events\n"), done.stderr)

    def test_a_file_that_may_not_grow_is_an_error_with_words(self):
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 1; exec "$@"', "sh", MUSTER, "run", str(harness.RETAIL_JOB), "--input",
             str(self.retail_rows((1, "2.50", "7", "France"), name="other.csv")), "--data-dir", str(self.folder / "small")],
            capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertGreater(done.returncode, 0, "a signal")
        self.assertIn("muster: ", done.stderr)

    def test_the_environment_sets_the_format_where_a_command_has_it(self):
        os.environ["MUSTER_OUTPUT"] = "csv"
        self.addCleanup(os.environ.pop, "MUSTER_OUTPUT")
        done = self.muster("report", "1", "--group", "by_customer", "--data-dir", self.data_dir)
        self.assertIn("customer,revenue,units,transactions", done.stdout)
        done = self.muster("batch", "list", "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("BATCH", done.stdout)

    def test_a_format_in_the_environment_that_no_command_knows_is_refused(self):
        os.environ["MUSTER_OUTPUT"] = "jsno"
        self.addCleanup(os.environ.pop, "MUSTER_OUTPUT")
        done = self.muster("batch", "list", "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 2)
        self.assertIn("MUSTER_OUTPUT: 'jsno' is not table, json, yaml or csv", done.stderr)
        done = self.muster("batch", "list", "--data-dir", self.data_dir, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_server_in_the_environment_gives_way_to_a_data_directory_on_the_command_line(self):
        os.environ["MUSTER_SERVER"] = "localhost:1"  # where no server listens
        self.addCleanup(os.environ.pop, "MUSTER_SERVER")
        done = self.muster("batch", "list", "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.muster("batch", "list")
        self.assertEqual(done.returncode, 5)
        self.assertIn("localhost:1: ", done.stderr)
        done = self.muster("batch", "list", "--data-dir", self.data_dir, "--server", "localhost:1")
        self.assertEqual(done.returncode, 2)

    def test_a_service_warns_of_a_misspelt_variable(self):
        os.environ["MUSTER_LEASES"] = "3s"
        self.addCleanup(os.environ.pop, "MUSTER_LEASES")
        file = pathlib.Path(self.folder) / "file"
        file.touch()  # no data directory, so that the service ends
        done = self.muster("up", "--data-dir", file, "--listen", "127.0.0.1:0")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r'level=warning msg="an environment variable is ignored.*" '
                                      r"variable=MUSTER_LEASES meant=MUSTER_LEASE\n")

    def test_a_wrong_format_is_wrong_usage(self):
        done = self.muster("batch", "list", "-o", "csv", "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 2)
        self.assertIn("'csv' is not table, json or yaml", done.stderr)

    def test_input_cannot_steer_the_terminal(self):
        control = "\x1b[31m", "\x9b31m"
        data = self.retail_rows((1, "1", control[0], "France"), (1, "1", control[1], "France"),
                                name="control.csv")
        done = self.muster("run", harness.RETAIL_JOB, "--input", data, "--data-dir", self.data_dir)
        wrong = self.muster("run", harness.RETAIL_JOB, "--input", "\x1b[31mnone.csv")
        for text in (done.stdout, wrong.stderr):
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\x9b", text)

    def test_each_mistake_of_a_job_file_is_a_line_of_its_own(self):
        job = pathlib.Path(self.folder) / "mistaken.yaml"
        job.write_text("colour: red\n", encoding="utf-8")
        lines = self.muster("job", "check", job).stderr.splitlines()
        self.assertGreater(len(lines), 3)
        for line in lines:
            self.assertRegex(line, r"^(muster: )?/.*/mistaken\.yaml:1:1: [^?]+$")

    def test_a_path_may_have_any_bytes(self):
        path = os.fsencode(self.folder) + b"/in\xff.csv"
        with open(path, "wb") as file:
            file.write((HEADER + "\n1,A,x,1,2010-12-01 08:26:00,1,7,France\n").encode())
        done = subprocess.run(
            [os.fsencode(MUSTER), b"run", os.fsencode(str(harness.RETAIL_JOB)), b"--input", path,
             b"--data-dir", os.fsencode(self.data_dir)],
            capture_output=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = self.muster("batch", "list", "-o", "json", "--data-dir", self.data_dir)
        self.assertEqual([batch["state"] for batch in json.loads(listed.stdout)],
                         ["complete", "complete"])


class SignalTest(MusterTest):
    def await_begin(self, process):
        for line in process.stderr:
            if "begins" in line:
                return

    def test_two_signals_that_come_together_are_one_wish_to_stop(self):
        process = self.start_run(retail_input(100_000), "--threads", 1)
        self.await_begin(process)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130)
        self.assertIn("stopped; run the same command again", errors)

    def test_a_stopped_new_batch_goes_on_by_the_same_command(self):
        data = retail_input(100_000)
        process = self.start_run(data, "--threads", 1, "--new")
        self.await_begin(process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertIn("run the same command again to go on with batch 1", errors)
        code, result, _ = self.run_job(data, "--new")
        self.assertEqual((code, result["batch"]), (0, 1))

    def test_a_command_that_only_looks_dies_of_a_signal(self):
        self.run_job(self.retail_rows(*[(1, "1", str(i), "France") for i in range(20000)]))
        # The pipe has no reader, so the program blocks in the middle of its output.
        process = subprocess.Popen([MUSTER, "report", "1", "--data-dir", str(self.data_dir)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=harness.TIMEOUT_SECONDS), -signal.SIGINT)
        process.communicate()


class ReadmeTest(MusterTest):
    """README.md's commands work as they stand, in a clone that was built."""

    def setUp(self):
        super().setUp()
        (self.folder / "examples").symlink_to(ROOT / "examples")
        program = self.folder / "build/release/cli/muster"
        program.parent.mkdir(parents=True)
        program.symlink_to(MUSTER)
        (self.folder / "build/demo").mkdir()

    def section(self, title):
        """Up to the next heading."""
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        [section] = re.findall(rf"\n##+ {title}\n.*?(?=\n##+ )", readme, re.S)
        return section

    def paste(self, *blocks):
        """Runs the blocks in one shell, with no muster on its path yet; returns the output."""
        done = subprocess.run(
            ["bash", "-e", "-c", "\n".join(blocks)], capture_output=True, text=True, cwd=self.folder,
            timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_what_the_demo_leaves_can_be_looked_into(self):
        (self.folder / "build/demo/online_retail.csv").symlink_to(retail_input(20000))
        run, look, query = blocks(self.section("What you see"), "")
        last_of_query = self.paste(run, look, query).splitlines()[-1]
        self.assertRegex(last_of_query, r"^201[01]-\d\d +-?[\d.]+ +-?\d+ *$")

    def write_the_job_of_ones_own(self):
        """Saves its files, and returns its section."""
        section = self.section("A job of your own in ten minutes")
        for name, language in (("timesheet.yaml", "yaml"), ("timesheet.py", "python")):
            self.assertIn(f"as `{name}`", section)
            [text] = blocks(section, language)
            self.write(name, text)
        return section

    def test_the_job_of_ones_own_works_as_it_stands_there(self):
        run, *_ = blocks(self.write_the_job_of_ones_own(), "")
        on_path = 'export PATH="$PWD/build/release/cli:$PATH"'
        self.paste(on_path, run)
        self.data_dir = self.folder / ".muster"
        [batch] = json.loads(self.muster("batch", "list", "-o", "json").stdout)
        self.assertEqual(batch["rejected"], 1)
        self.assertEqual(self.rows(1, "by_project")[0]["hours"], "7.75")

    def test_the_job_of_ones_own_counts_every_number_and_rejects_by_itself_what_is_none(self):
        self.write_the_job_of_ones_own()
        numbers = ["1E2", "25e-1", "0E-8", "1_000", "-0", "1.10"]
        others = {"NaN": "not a number", "Infinity": "not a number", "-Infinity": "not a number",
                  "twelve": "not a number", "0.125": "more than 2 decimals", "1E999999": "hours: "}
        lines = [f"bridge,{text}" for text in [*numbers, *others]]
        hours = self.write("hours.csv", "\n".join(["Project,Hours", *lines]) + "\n")
        code, result, errors = self.run_job(hours, job=self.folder / "timesheet.yaml")
        self.assertEqual((code, result["rejected"]), (3, len(others)), errors)  # more than the job tolerates
        self.assertNotIn("handler program failed", errors)
        self.assertEqual(self.rows(1, "by_project"),
                         [{"project": "bridge", "hours": "1103.60", "bookings": str(len(numbers))}])
        with contextlib.closing(sqlite3.connect(self.data_dir / "report.db")) as report:
            told = report.execute("SELECT reason FROM muster_rejections ORDER BY line").fetchall()
        for [why], (text, reason) in zip(told, others.items(), strict=True):
            self.assertIn(reason, why, text)
            self.assertNotIn("poison", why, text)


def blocks(section, language):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.M | re.S)
    return [text for named, text in fenced if named == language]


if __name__ == "__main__":
    harness.main()
