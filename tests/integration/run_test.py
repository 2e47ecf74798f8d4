# SPDX-License-Identifier: Apache-2.0
"""`muster run` from the outside: what a user sees."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time

import harness
from harness import ROOT, MusterTest, retail_input
from mesh import Program, free_address

# The real Online Retail file, where the environment names it; otherwise a generated one of the same
# size.
REAL_INPUT = os.environ.get("MUSTER_RETAIL_CSV")


class RunTest(MusterTest):
    def test_the_report_is_the_direct_sum(self):
        rows = 541_909 if REAL_INPUT else harness.RETAIL_ROWS
        data = pathlib.Path(REAL_INPUT) if REAL_INPUT else retail_input(rows)
        code, result, errors = self.run_job(data)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["transactions"], rows)
        self.assertTrue(result["complete"])
        self.assertEqual(result["items"], -(-rows // 500))
        self.assert_all_accounted_for(result)
        self.assert_report_is_the_direct_sum(data, result["batch"])
        self.assert_receipt_holds(result["batch"])

    def test_one_json_object_with_the_promised_members(self):
        code, result, errors = self.run_job(self.retail_rows((1, "2.50", "7", "France")))
        self.assertEqual(code, 0, errors)
        self.assertEqual(list(result), [
            "batch", "job", "transactions", "aggregated", "rejected", "dead_lettered",
            "duplicates_dropped", "items", "attempts", "seconds", "transactions_per_second",
            "complete", "sla_seconds", "deadline", "late_by_seconds", "at_risk"])
        self.assertEqual((result["batch"], result["job"]), (1, "retail"))
        self.assertEqual((result["late_by_seconds"], result["at_risk"]), (0, False))

    def test_a_late_batch_says_by_how_much(self):
        code, result, errors = self.run_job(self.retail_rows((1, "2.50", "7", "France")),
                                            "--sla", "1ms")
        self.assertEqual(code, 4, errors)
        self.assertEqual(result["sla_seconds"], 0.001)
        self.assertGreater(result["late_by_seconds"], 0)

    def test_money_is_exact_and_numbers_are_strings(self):
        data = self.retail_rows((3, "0.1", "7", "France"), (-1, "0.001", "7", "France"),
                                (1, "-11062.06", "", "EIRE"))
        _, result, _ = self.run_job(data)
        self.assertEqual(self.rows(result["batch"], "by_customer"), [
            {"customer": "", "revenue": "-11062.060", "units": "1", "transactions": "1"},
            {"customer": "7", "revenue": "0.299", "units": "2", "transactions": "2"}])
        self.assertEqual(self.rows(result["batch"], "by_country_month")[0], {
            "country": "EIRE", "month": "2010-12", "revenue": "-11062.060", "units": "1",
            "transactions": "1"})

    def run_traced(self, *more, **environment):
        """Returns the trace that the handler's program receives, and the trace stored with the
        batch."""
        self.write("tell.py", "import json, sys\n"
                   "for line in sys.stdin:\n"
                   "    item = json.loads(line)\n"
                   "    print(item['traceparent'], item.get('tracestate'), file=open('told', 'w'))\n"
                   "    print(json.dumps({'item': item['item'], 'outcome': 'ok'}), flush=True)\n")
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "handler: {linked: retail}", "handler: {command: [python3, tell.py]}"))
        data = self.retail_rows((3, "0.1", "7", "France"))
        done = subprocess.run([harness.MUSTER, *self.run_arguments(data, "--new", *more, job=job)],
                              capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS,
                              cwd=self.folder, env=dict(os.environ, **environment))
        self.assertEqual(done.returncode, 0, done.stderr)
        batch = json.loads(done.stdout)["batch"]
        kept = self.muster("batch", "get", batch, "--data-dir", self.data_dir, "-o", "json")
        return (self.folder / "told").read_text().split(), json.loads(kept.stdout)["traceparent"]

    def test_a_program_is_told_the_trace_in_which_muster_was_started(self):
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        told, kept = self.run_traced(TRACEPARENT=trace, TRACESTATE="shop=1")
        self.assertEqual((told, kept), ([trace, "shop=1"], trace))
        named = trace.replace("4bf9", "0000")
        told, kept = self.run_traced("--traceparent", named, TRACEPARENT=trace)
        self.assertEqual((told, kept), ([named, "None"], named))

    def test_a_batch_that_nobody_traces_begins_a_trace_of_its_own(self):
        told, kept = self.run_traced()
        self.assertEqual(told, [kept, "None"])
        self.assertRegex(kept, "^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$")
        self.assertNotEqual(self.run_traced()[1], kept)

    def test_a_handler_server_that_is_not_there_is_told_once_and_ends_the_run(self):
        address = free_address()
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "handler: {linked: retail}", f'handler: {{grpc: "{address}"}}'))
        data = self.retail_rows((3, "0.1", "7", "France"))
        for wanted in ("--new", "--quiet"):
            code, _, errors = self.run_job(data, "--handler-patience", "1s", wanted, job=job)
            self.assertEqual(code, 5, errors)
            self.assertEqual(errors.count("handler server failed"), 1, errors)
            self.assertIn(f"job.yaml: the handler at {address} cannot be reached", errors)
        self.assertIn("start it; once that is mended, run the same command again to go on with batch 1", errors)

    def test_people_can_open_the_report_with_sqlite(self):
        _, result, _ = self.run_job(self.retail_rows((3, "0.1", "7", "France")))
        database = sqlite3.connect(self.data_dir / "report.db")
        self.addCleanup(database.close)
        rows = database.execute(
            "SELECT customer, revenue, units, transactions FROM by_customer WHERE batch = ?",
            [result["batch"]]).fetchall()
        self.assertEqual(rows, [("7", "0.300", 3, 1)])

    def test_a_run_that_is_done_says_so_and_prints_the_report_again(self):
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.run_job(data)
        done = self.muster("run", harness.RETAIL_JOB, "--input", data, "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("batch 1 is done already", done.stderr)
        self.assertIn("France", done.stdout)

    def test_a_changed_input_is_refused_by_content(self):
        data = self.retail_rows((3, "0.1", "7", "France"), (1, "5", "8", "France"))
        self.run_job(data)
        changed = data.read_text().replace(",5,8,", ",6,8,")
        stat = data.stat()
        data.write_text(changed)
        os.utime(data, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        code, result, errors = self.run_job(data)
        self.assertEqual((code, result), (1, None))
        self.assertIn("is not the input that batch 1 was made of", errors)
        self.assertIn("--new", errors)

    def test_a_batch_whose_input_is_gone_is_given_up_as_the_refusal_says(self):
        data = self.retail_rows((1, "2.50", "7", "France"))
        killed = subprocess.run(
            [harness.MUSTER, *self.run_arguments(data)], capture_output=True, timeout=harness.TIMEOUT_SECONDS,
            env=dict(os.environ, MUSTER_FAILPOINT="initiator.after_batch_recorded"))
        self.assertEqual(killed.returncode, -signal.SIGKILL)
        self.retail_rows((2, "2.50", "7", "France"))
        code, _, errors = self.run_job(data)
        self.assertEqual(code, 1)
        self.assertIn("Batch 1 stays open; to give it up, start `muster up --data-dir ", errors)
        self.assertIn("cancel it there: muster batch cancel 1 --server ", errors)
        server = free_address()
        up = Program([harness.MUSTER, "up", "--listen", server, "--data-dir", self.data_dir], "msg=ready")
        self.addCleanup(up.kill)
        up.await_ready()
        cancelled = self.muster("batch", "cancel", 1, "--server", server)
        self.assertEqual(cancelled.returncode, 0, cancelled.stderr)
        self.assertEqual(up.stop(), 0)
        code, result, errors = self.run_job(data)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["batch"], 2)

    def test_an_input_that_grew_is_refused(self):
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.run_job(data)
        with data.open("a") as file:
            file.write("1,A,thing,1,2010-12-01 08:26:00,1,9,France\n")
        code, _, errors = self.run_job(data)
        self.assertEqual(code, 1)
        self.assertIn("bytes", errors)

    def test_new_runs_the_same_input_once_more(self):
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.run_job(data)
        code, result, errors = self.run_job(data, "--new")
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["batch"], 2)
        self.assertEqual(self.rows(1, "by_customer"), self.rows(2, "by_customer"))

    def test_another_revision_of_a_finished_job_is_a_new_batch(self):
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.run_job(data)
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "transactions: 500", "transactions: 100"))
        code, result, errors = self.run_job(data, job=job)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["batch"], 2)

    def test_a_request_id_never_makes_a_second_batch(self):
        data = self.retail_rows((3, "0.1", "7", "France"))
        self.run_job(data, "--request-id", "march")
        twice = self.muster(*self.run_arguments(data, "--request-id", "march", "--new"))
        self.assertEqual(twice.returncode, 2, twice.stderr)
        code, result, _ = self.run_job(data, "--request-id", "march")
        self.assertEqual((code, result["batch"]), (0, 1))
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "transactions: 500", "transactions: 100"))
        code, _, errors = self.run_job(data, "--request-id", "march", job=job)
        self.assertEqual(code, 1)
        self.assertIn("job revision", errors)

    def test_progress_is_plain_lines_when_stderr_is_no_terminal(self):
        done = self.muster("run", harness.RETAIL_JOB, "--input", retail_input(20000),
                           "--data-dir", self.data_dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("committed 20,000", done.stderr)
        self.assertNotIn("\r", done.stderr)
        self.assertNotIn("\x1b", done.stderr)

    def test_a_second_process_on_the_data_directory_gets_a_clear_error(self):
        # The run holds the directory for as long as its input is open.
        self.write("silent.py", "import sys\nsys.stdin.read()\n")
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "handler: {linked: retail}", "handler: {command: [python3, silent.py], deadline: 1h}"))
        data = self.retail_rows((1, "1", "7", "France"))
        first = self.start_run(data, job=job)
        try:
            for line in first.stderr:
                if "begins" in line:
                    break
            second = self.muster(*self.run_arguments(data, job=job))
        finally:
            first.kill()
            first.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(second.returncode, 5)
        self.assertIn("is used by another process", second.stderr)

    def test_a_program_that_hangs_is_named_before_it_is_ended(self):
        self.write("hang.py", "import sys, time\nsys.stdin.readline()\ntime.sleep(1000)\n")
        text = harness.RETAIL_JOB.read_text()
        for old, new in (
                ("handler: {linked: retail}", "handler: {command: [python3, hang.py], deadline: 1s}"),
                ("max_attempts: 5", "max_attempts: 1")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        code, result, errors = self.run_job(self.retail_rows((1, "1", "7", "France")),
                                            job=self.write("job.yaml", text))
        self.assertEqual(code, 3, errors)
        self.assertEqual(result["dead_lettered"], 1)
        warned, ended = errors.index("a handler is slow"), errors.index("gave no answer within 1s")
        self.assertLess(warned, ended)
        self.assertIn("item 1/0 has been with its handler (python3 hang.py)", errors)

    def test_a_signal_switches_its_log_to_debug_and_back(self):
        self.write("wait.py", "import sys\nfor line in sys.stdin: pass\n")
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "handler: {linked: retail}", "handler: {command: [python3, wait.py], deadline: 1h}"))
        data = self.retail_rows((1, "1", "7", "France"))
        run = Program([harness.MUSTER, *self.run_arguments(data, job=job)], "begins")
        self.addCleanup(run.kill)
        run.await_ready()
        for level in ("debug", "info"):
            run.signal(signal.SIGUSR1)
            run.await_line(f'msg="the log level changes" to={level}')

    def test_a_program_gets_no_variable_that_it_was_not_given(self):
        self.write("env.py", "import json, os, sys\n"
                   "for line in sys.stdin:\n"
                   "    json.dump(sorted(os.environ), open('told', 'w'))\n"
                   "    answer = {'item': json.loads(line)['item'], 'outcome': 'ok'}\n"
                   "    print(json.dumps(answer), flush=True)\n")
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "handler: {linked: retail}", "handler: {command: [python3, env.py], env: {RATE: '1'}}"))
        data = self.retail_rows((3, "0.1", "7", "France"))
        arguments = self.run_arguments(data, "--handler-env", "DB_URL", job=job)
        done = subprocess.run([harness.MUSTER, *arguments], capture_output=True, text=True,
                              timeout=harness.TIMEOUT_SECONDS, cwd=self.folder,
                              env=dict(os.environ, SECRET="s", DB_URL="db"))
        self.assertEqual(done.returncode, 0, done.stderr)
        told = set(json.loads((self.folder / "told").read_text()))
        self.assertLessEqual({"DB_URL", "PATH", "RATE", "TMPDIR"}, told)
        self.assertNotIn("SECRET", told)
        self.assertNotIn("MUSTER", told)

    def test_several_partitions_and_threads_give_the_same_report(self):
        data = retail_input(20000)
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "partitions: 1", "partitions: 4"))
        self.assertIn("partitions: 4", job.read_text())
        code, result, errors = self.run_job(data, "--threads", 4, job=job)
        self.assertEqual(code, 0, errors)
        self.assert_report_is_the_direct_sum(data, result["batch"])

    def test_a_queue_that_takes_few_items_gives_the_same_report(self):
        data = self.retail_rows(*[(1, "0.1", str(i % 7), "France") for i in range(3000)])
        for carriage in ("by reference", "inline"):
            job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
                "transactions: 500", "transactions: 10").replace(
                    "{partitions: 1", "{partitions: 2" + (
                        ", content: inline" if carriage == "inline" else "")))
            for bound in (["--max-queue-items", "9"], ["--max-queue-bytes", "2KiB"]):
                code, result, errors = self.run_job(data, "--new", *bound, job=job)
                self.assertEqual((code, result["aggregated"]), (0, 3000), errors)

    def test_a_python_handler_gives_the_same_exact_report(self):
        data = retail_input(20000)
        code, result, errors = self.run_job(
            data, job=ROOT / "examples/retail/job_python.yaml")
        self.assertEqual(code, 0, errors)
        self.assert_report_is_the_direct_sum(data, result["batch"])
        self.assert_receipt_holds(result["batch"])


class StopTest(MusterTest):
    def stop_midway(self, how):
        """Stops a run in mid-batch with a signal; returns (exit code, seconds it took, stderr)."""
        data = retail_input(harness.RETAIL_ROWS)
        process = self.start_run(data, "--threads", 1)
        for line in process.stderr:
            if "begins" in line:
                break
        begun = time.monotonic()
        process.send_signal(how)
        _, errors = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        return data, process.returncode, time.monotonic() - begun, errors

    def stops_cleanly(self, how):
        data, code, _, errors = self.stop_midway(how)
        self.assertEqual(code, 130, errors)
        self.assertIn("run the same command again", errors)
        code, result, errors = self.run_job(data)
        self.assertEqual(code, 0, errors)
        self.assertIn("goes on where it was stopped", errors)
        self.assertEqual(result["duplicates_dropped"], 0)
        self.assert_report_is_the_direct_sum(data, result["batch"])
        self.assert_receipt_holds(result["batch"])

    def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(self):
        self.stops_cleanly(signal.SIGINT)

    def test_sigterm_stops_cleanly_and_says_how_to_go_on(self):
        self.stops_cleanly(signal.SIGTERM)

    def test_a_handler_that_does_not_listen_cannot_hold_up_the_end(self):
        self.write("deaf.py", "import signal, sys\n"
                   "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                   "sys.stdin.readline()\nwhile True: signal.pause()\n")
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "handler: {linked: retail}", "handler: {command: [python3, deaf.py], deadline: 1h}"))
        process = self.start_run(self.retail_rows((1, "1", "7", "France")), job=job)
        for line in process.stderr:
            if "begins" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)

    def test_a_batch_that_is_late_ends_with_4_and_is_complete(self):
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace("max: 5m", "max: 1ms"))
        code, result, errors = self.run_job(self.retail_rows((1, "1", "7", "France")), job=job)
        self.assertEqual(code, 4, errors)
        self.assertTrue(result["complete"])


class LookTest(MusterTest):
    """report, batch, queue and job."""

    def setUp(self):
        super().setUp()
        self.data = self.retail_rows((3, "0.1", "7", "France"), ("x", "1", "7", "France"))
        self.code, self.result, self.errors = self.run_job(self.data)

    def look(self, *arguments):
        done = self.muster(*arguments, "--data-dir", self.data_dir)
        return done.returncode, done.stdout, done.stderr

    def test_rejections_beyond_tolerance_end_with_3_and_the_rest_counts(self):
        self.assertEqual(self.code, 3, self.errors)
        self.assertEqual((self.result["aggregated"], self.result["rejected"]), (1, 1))
        self.assertTrue(self.result["complete"])

    def test_tolerated_rejections_end_with_0(self):
        job = self.write("job.yaml", harness.RETAIL_JOB.read_text().replace(
            "rejected: 0", "rejected: 1"))
        self.data_dir = self.folder / "other"
        code, result, errors = self.run_job(self.data, job=job)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["rejected"], 1)

    def test_batch_get_names_line_and_reason_of_what_was_rejected(self):
        code, out, _ = self.look("batch", "get", 1)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"(?m)^ *3  .*quantity")

    def test_batch_list_shows_every_batch(self):
        code, out, _ = self.look("batch", "list", "-o", "json")
        self.assertEqual(code, 0)
        [batch] = json.loads(out)
        self.assertEqual((batch["batch"], batch["state"], batch["rejected"]), (1, "complete", 1))

    def test_report_in_csv_needs_one_group(self):
        code, out, _ = self.look("report", 1, "-o", "csv", "--group", "by_customer")
        self.assertEqual((code, out), (0, "customer,revenue,units,transactions\n7,0.300,3,1\n"))
        code, _, errors = self.look("report", 1, "-o", "csv")
        self.assertEqual(code, 1)
        self.assertIn("--group", errors)

    def test_the_bill_of_a_run_counts_its_storage_transactions(self):
        data = retail_input(5000)
        self.assertEqual(self.run_job(data)[0], 0)
        done = self.muster("cost", "--data-dir", self.data_dir, "-o", "json", "--price", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        bill = json.loads(done.stdout)
        operations = bill["operations"]
        self.assertEqual(operations["begin"], {"useful": 10, "wasted": 0}, bill)
        self.assertEqual(sum(o["useful"] + o["wasted"] for o in operations.values()),
                         bill["transactions"])
        self.assertEqual(sum(o["wasted"] for o in operations.values()), bill["wasted"])
        self.assertAlmostEqual(bill["cost"], bill["transactions"] / 100)
        self.assertEqual(bill["idle_hour"]["calls"], 240)
        self.assertEqual(self.muster("cost", 9, "--data-dir", self.data_dir).returncode, 1)

    def test_an_unknown_batch_or_group_is_an_error(self):
        self.assertEqual(self.look("report", 9)[0], 1)
        code, _, errors = self.look("report", 1, "--group", "by_moon")
        self.assertEqual(code, 1)
        self.assertIn("by_country_month", errors)

    def test_the_receipt_adds_up_and_says_what_an_acknowledgement_survives(self):
        code, out, _ = self.look("batch", "receipt", 1, "--verify")
        self.assertEqual(code, 0)
        for line in ("transactions 2", "aggregated 1", "rejected 1", "dead_lettered 0",
                     "ack_survives power"):
            self.assertIn(line, out.splitlines())

    def test_a_tampered_store_fails_verification_loudly(self):
        for change in ("UPDATE by_customer SET revenue = '0.301'",
                       "UPDATE by_customer SET units = units + 1",
                       "DELETE FROM by_customer"):
            intact = self.data_dir
            self.data_dir = self.folder / "tampered"
            shutil.rmtree(self.data_dir, ignore_errors=True)
            shutil.copytree(intact, self.data_dir)
            with contextlib.closing(sqlite3.connect(self.data_dir / "report.db")) as database:
                with self.assertRaisesRegex(sqlite3.OperationalError, "readonly"):
                    database.execute(change)
            with (self.data_dir / "report.db").open("r+b") as file:
                file.seek(18)  # the version that tells SQLite to read and not to write
                file.write(bytes([2]))
            with contextlib.closing(sqlite3.connect(self.data_dir / "report.db")) as database:
                database.execute(change)
                database.commit()
            code, _, errors = self.look("batch", "receipt", 1, "--verify")
            self.data_dir = intact
            self.assertEqual(code, 6, change)
            self.assertIn("does not prove", errors)

    def test_queues_can_be_looked_into(self):
        code, out, errors = self.look("queue", "list", "-o", "json")
        self.assertEqual(code, 0, errors)
        queues = {q["queue"]: q for q in json.loads(out)}
        self.assertEqual(queues["local/retail-in-0"]["ready"], 0)
        self.assertEqual(queues["local/retail-in-0"]["total_in"], 1)
        self.assertEqual(self.look("queue", "stats", "retail-in-0")[0], 0)
        self.assertEqual(self.look("queue", "peek", "retail-in-0")[0], 0)
        self.assertEqual(self.look("queue", "poison", "retail-in-0")[0], 0)
        self.assertEqual(self.look("queue", "stats", "nothing-such")[0], 1)

    def test_usage_errors_end_with_2(self):
        for arguments in ([], ["fly"], ["run"], ["run", "job.yaml"], ["report"],
                          ["report", "1", "-o", "xml"]):
            self.assertEqual(self.muster(*arguments).returncode, 2, arguments)
        self.assertEqual(self.muster("--help").returncode, 0)
        self.assertEqual(self.muster("version").returncode, 0)

    def test_looking_where_nothing_is_is_an_error_and_leaves_nothing_behind(self):
        nowhere = self.folder / "nowhere"
        for command in (["report", "1"], ["batch", "list"], ["queue", "list"]):
            done = self.muster(*command, "--data-dir", nowhere)
            self.assertEqual(done.returncode, 1, command)
        self.assertFalse(nowhere.exists())


if __name__ == "__main__":
    harness.main()
