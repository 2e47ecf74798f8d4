# SPDX-License-Identifier: Apache-2.0
"""The package and a mesh of real programs."""

import datetime
import decimal
import itertools
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import types
import unittest

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tests/integration"), str(ROOT / "examples/python_retail")]

import handler as retail
import harness
import muster
from harness import retail_input
from mesh import LOOPBACK, READY_SECONDS, Cut, Mesh
from mesh_case import MeshTest
from muster.v1 import mesh_service_pb2, mesh_service_pb2_grpc

EXAMPLE = ROOT / "examples/python_retail"


def make_certificate(folder, name):
    """Paths of a certificate for this machine, which is its own root, and of its key."""
    files = folder / f"{name}.pem", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0],
         "-keyout", files[1]], check=True, capture_output=True)
    return files


class MeshClientTest(MeshTest):
    def setUp(self):
        super().setUp()
        self.await_heartbeat()
        self.client = self.connect(self.mesh.server)

    def await_heartbeat(self):
        """A controller that has not heard of the initiator yet lets the first results lie for 10 s."""
        with grpc.insecure_channel(self.mesh.reporter) as channel:
            stub = mesh_service_pb2_grpc.MeshServiceStub(channel)
            request = mesh_service_pb2.ListInstancesRequest(role="ROLE_INITIATOR")
            end = time.monotonic() + READY_SECONDS
            while not stub.ListInstances(request, timeout=READY_SECONDS).instances:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)  # no event announces it

    def connect(self, address):
        client = muster.Client(address, controller=self.mesh.reporter)
        self.addCleanup(client.close)
        return client

    def connect_without_controller(self):
        client = muster.Client(self.mesh.server)
        self.addCleanup(client.close)
        return client

    def apply_served(self, work, **how):
        """A retail job whose handler is `work`, served here."""
        server = muster.serve_handler(work, version="1", listen=f"{LOOPBACK}:0", **how)
        self.addCleanup(server.stop, 0)
        return self.client.apply_job(self.job_at(server.address))

    def job_at(self, address):
        text = (EXAMPLE / "job.yaml").read_text()
        self.assertIn('"localhost:7800"', text)
        return text.replace('"localhost:7800"', f'"{address}"')

    def assert_totals(self, batch, data, rows):
        self.assertEqual((batch.state, batch.complete), (muster.BatchState.COMPLETE, True))
        self.assertEqual((batch.transactions, batch.aggregated, batch.rejected), (rows, rows, 0))
        self.assert_report_is_the_direct_sum(data, batch.number)
        self.assertIn(f"aggregated {rows}", self.client.receipt(batch).text.splitlines())


class OutputTest(MeshClientTest):
    def test_records_come_back_in_the_order_of_the_input_past_a_restart_of_the_controller(self):
        def work(item, results):
            for transaction in item.transactions:
                line = transaction.line
                if line % 10 == 0:
                    results.reject(line, "a round line")
                    continue
                for part in range(line % 3):
                    results.output(line, {"line": line, "note": f"é {part} " + "x" * 1000,
                                          "half": decimal.Decimal(line) / 2 if part else None})

        server = muster.serve_handler(work, version="1", listen=f"{LOOPBACK}:0")
        self.addCleanup(server.stop, 0)
        text = self.job_at(server.address)
        job = self.client.apply_job(
            text + "\noutputs: {columns: {line: int, note: text, half: decimal(1)}}\n")
        self.assertEqual([(column.name, column.kind, column.scale) for column in job.outputs],
                         [("line", "int", 0), ("note", "text", 0), ("half", "decimal", 1)])
        rows = 4000
        batch = self.client.wait(self.client.submit(job.name, retail_input(rows)))
        records = self.client.output(batch)
        got = [next(records)]
        self.mesh.controller.kill()
        self.mesh.controller.restart()
        got += records
        wanted = [(line, {"line": line, "note": f"é {part} " + "x" * 1000,
                          "half": decimal.Decimal(line) / 2 if part else None})
                  for line in range(2, rows + 2) if line % 10 for part in range(line % 3)]
        self.assertGreater(sum(len(record.values["note"]) for record in got), 3 << 20)  # some pages
        self.assertEqual([(record.line, record.values) for record in got], wanted)
        self.assertIn(f"rejected {sum(line % 10 == 0 for line in range(2, rows + 2))}",
                      self.client.receipt(batch).text.splitlines())

    def test_a_batch_whose_job_has_no_outputs_says_so(self):
        job = self.apply_served(retail.bill)
        batch = self.client.wait(self.client.submit(job.name, retail_input(100)))
        with self.assertRaisesRegex(muster.NotFound, "has no outputs"):
            next(self.client.output(batch))


class ReadmeTest(MeshClientTest):
    def test_the_program_in_the_readme_runs_as_it_is_printed(self):
        [program] = re.findall(r"^```python\n(import muster\n.*?)^```$",
                               (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        self.ask("job", "apply", ROOT / "examples/retail/job.yaml")
        data = self.folder / "build/demo/online_retail.csv"
        data.parent.mkdir(parents=True)
        data.symlink_to(retail_input(1000))
        self.assertIn('"localhost:7700"', program)
        done = subprocess.run([sys.executable, "-c", program.replace("localhost:7700", self.mesh.server)],
                              cwd=self.folder, capture_output=True, text=True, timeout=READY_SECONDS)
        # It may say that it waits for a processor.
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = {row.keys["customer"]: row.measures["revenue"]
                    for row in self.client.report(self.client.get(1), "by_customer")}
        printed = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
        self.assertEqual({customer: decimal.Decimal(revenue) for customer, revenue in printed}, expected)
        self.assertGreater(len(expected), 10)


class SubmitTest(MeshClientTest):
    def test_a_batch_is_billed_by_a_handler_in_python_to_the_exact_totals(self):
        data = retail_input(20000)
        job = self.apply_served(retail.bill)
        self.assertEqual((job.name, job.revised), ("retail_server", True))
        batch = self.client.wait(self.client.submit(job.name, data), timeout=READY_SECONDS)
        self.assert_totals(batch, data, 20000)

        rows = self.client.report(batch, "by_country_month")
        told = {(row["country"], row["month"]): row for row in next(
            group["rows"] for group in self.report(batch.number)["groups"]
            if group["name"] == "by_country_month")}
        self.assertEqual(len(rows), len(told))
        for row in rows:
            other = told[row.keys["country"], row.keys["month"]]
            for measure in ("revenue", "units", "transactions"):
                self.assertIs(type(row.measures[measure]), decimal.Decimal)
                self.assertEqual(row.measures[measure], decimal.Decimal(other[measure]))
        with self.assertRaisesRegex(muster.NotFound, "by_customer"):
            self.client.report(batch, "by_planet")

    def test_the_report_is_found_by_asking_the_initiator(self):
        job = self.apply_served(retail.bill)
        data = self.retail_rows((3, "0.1", "7", "France"))
        asking = muster.Client(self.mesh.server)
        self.addCleanup(asking.close)
        batch = asking.wait(asking.submit(job.name, data), timeout=READY_SECONDS)
        [row] = asking.report(batch, "by_customer")
        self.assertEqual((row.keys, row.measures["revenue"]), ({"customer": "7"}, decimal.Decimal("0.3")))

    def test_every_item_and_attempt_belongs_to_the_trace_of_the_submit(self):
        seen = []

        def bill(item, results):
            seen.append((item.traceparent, item.tracestate))
            if item.attempt == 1:
                raise muster.Retry("once more", datetime.timedelta())
            retail.bill(item, results)

        job = self.apply_served(bill)
        data = retail_input(5000)
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        batch = self.client.submit(job.name, data, traceparent=trace, tracestate="shop=1")
        batch = self.client.wait(batch, timeout=READY_SECONDS)
        self.assert_totals(batch, data, 5000)
        self.assertEqual(batch.traceparent, trace)
        self.assertEqual(len(seen), 2 * batch.items)
        self.assertEqual(set(seen), {(trace, "shop=1")})
        self.assertEqual(self.answer("batch", "get", batch.number)["traceparent"], trace)

    def test_a_batch_is_promised_what_its_submitter_asks_for(self):
        promise = datetime.timedelta(hours=1)
        job = self.apply_served(retail.bill)
        data = self.retail_rows((3, "0.1", "7", "France"))
        batch = self.client.wait(self.client.submit(job.name, data, sla=promise), timeout=READY_SECONDS)
        self.assertEqual(batch.sla, promise)
        self.assertEqual(batch.deadline, batch.created + promise)
        self.assertEqual((batch.late_by, batch.at_risk), (datetime.timedelta(0), False))

    def test_the_same_submission_again_is_the_same_batch(self):
        job = self.apply_served(retail.bill)
        data = self.retail_rows((3, "0.1", "7", "France"))
        other = self.retail_rows((4, "0.1", "7", "France"), name="other.csv")
        first = self.client.submit(job.name, data, request_id="march")
        self.client.wait(first, timeout=READY_SECONDS)
        self.assertEqual(self.client.submit(job.name, data, "march").number, first.number)
        with self.assertRaises(muster.FailedPrecondition) as reused:
            self.client.submit(job.name, other, "march")
        self.assertEqual((reused.exception.reason, dict(reused.exception.facts)),
                         ("REQUEST_ID_REUSED", {"batch": str(first.number)}))
        # Without an id, the content is it, for the command as for the package.
        second = self.client.submit(job.name, other)
        told = self.answer("batch", "submit", job.name, "--input", other)
        self.assertEqual(told["batch"], second.number)
        self.assertEqual([batch.number for batch in self.client.list_batches(job.name)],
                         [second.number, first.number])

    def test_a_batch_is_refused_while_the_queue_takes_too_long_to_drain_and_taken_in_afterwards(self):
        def slow(item, results):
            time.sleep(0.25)
            retail.bill(item, results)

        server = muster.serve_handler(slow, version="1", listen=f"{LOOPBACK}:0")
        self.addCleanup(server.stop, 0)
        text = self.job_at(server.address)
        self.assertIn("max_attempts: 5", text)
        job = self.client.apply_job(text.replace("transactions: 500", "transactions: 5").replace(
            "max_attempts: 5", "max_attempts: 5, max_drain: 1s"))
        flood = self.client.submit(job.name, retail_input(400))  # 80 items of two workers: 10 s
        # How long an item takes is known by the first heartbeat after one.
        refused = None
        for number in itertools.count():
            data = self.retail_rows((3, "0.1", str(number), "France"), name=f"{number}.csv")
            try:
                self.client.submit(job.name, data)
            except muster.ResourceExhausted as error:
                refused = error
                break
            self.assertFalse(self.client.get(flood).complete)
            time.sleep(0.2)  # no event announces it
        self.assertEqual((refused.reason, refused.facts["job"], refused.facts["limit_seconds"]),
                         ("DRAIN_TOO_LONG", job.name, "1"))
        self.assertGreater(int(refused.facts["estimate_seconds"]), 1)
        self.assertGreaterEqual(refused.retry_after.total_seconds(), 1)
        told = self.ask("batch", "submit", job.name, "--input", data)
        self.assertEqual((told.returncode, told.stdout), (5, ""))
        self.assertRegex(told.stderr, "queue.max_drain is 1s: submit again in [0-9]+s")
        taken_in = self.answer("batch", "submit", job.name, "--input", data, "--wait-for-room",
                               "--wait")
        self.assertEqual((taken_in["complete"], taken_in["transactions"]), (True, 1))
        self.assertTrue(self.client.wait(flood, timeout=READY_SECONDS).complete)

    def test_lines_that_cannot_be_billed_are_rejected_and_all_are_accounted_for(self):
        job = self.apply_served(retail.bill)
        data = self.retail_rows((3, "0.1", "7", "France"), (1, "0.0001", "7", "France"),
                                ("x", "1", "7", "France"))
        batch = self.client.wait(self.client.submit(job.name, data), timeout=READY_SECONDS)
        self.assertEqual((batch.transactions, batch.aggregated, batch.rejected), (3, 1, 2))
        self.assert_report_is_the_direct_sum(data, batch.number)
        lines = data.read_bytes().splitlines()
        for client in (self.client, self.connect_without_controller()):
            rejected = list(client.rejections(batch))
            self.assertEqual([(one.item, one.line) for one in rejected], [(0, 3), (0, 4)])
            self.assertEqual([one.record for one in rejected], lines[2:4])
            self.assertIn("'x'", rejected[1].reason)
        self.assertEqual(list(self.client.dead_letters(batch)), [])
        with self.assertRaises(muster.NotFound):
            list(self.client.rejections(batch.number + 1))

    def test_what_was_rejected_is_retried_once_and_both_batches_add_up(self):
        mended = threading.Event()

        def picky(item, results):
            good = []
            for transaction in item.transactions:
                if transaction["customer"] == "7" or mended.is_set():
                    good.append(transaction)
                else:
                    results.reject(transaction.line, "a stranger")
            retail.bill(types.SimpleNamespace(transactions=good), results)

        job = self.apply_served(picky)
        data = self.retail_rows((3, "0.1", "7", "France"), (1, "2", "8", "France"),
                                (1, "4", "9", "Spain"), (1, "8", "7", "Spain"))
        labels = {"team": "billing"}
        first = self.client.wait(self.client.submit(job.name, data, labels=labels),
                                 timeout=READY_SECONDS)
        self.assertEqual((first.aggregated, first.rejected), (2, 2))
        receipt = self.client.receipt(first).checksum
        line, other = [one.line for one in self.client.rejections(first)]
        again = self.client.retry_rejections(first, [line])
        self.assertEqual([(one.transactions, one.is_new) for one in again], [(1, True)])
        second = self.client.wait(again[0], timeout=READY_SECONDS)
        self.assertEqual((second.rejected, second.retry_of, dict(second.labels)),
                         (1, first.number, labels))
        self.assertEqual([one.retry_of_line for one in self.client.rejections(second)], [line])
        self.assertEqual([one.retried_in for one in self.client.rejections(first)],
                         [second.number, 0])
        mended.set()
        self.assertEqual(self.client.retry_rejections(first, [line]),
                         [muster.RetriedBatch(second.number, 1, False)])
        rest = [*self.client.retry_rejections(second), *self.client.retry_rejections(first)]
        self.assertEqual([(one.transactions, one.is_new) for one in rest], [(1, True)] * 2)
        batches = [first.number, second.number, *(one.batch for one in rest)]
        for one in rest:
            self.client.wait(one.batch, timeout=READY_SECONDS)
        with self.assertRaises(muster.FailedPrecondition):
            self.client.retry_rejections(first)
        with self.assertRaises(ValueError):
            self.client.retry_rejections(first, [])
        revenue = [(row.keys["customer"], row.measures["revenue"]) for batch in batches
                   for row in self.client.report(batch, "by_customer")]
        self.assertEqual(sorted(revenue), [("7", decimal.Decimal("8.3")), ("8", 2), ("9", 4)])
        self.assertEqual(self.client.receipt(first).checksum, receipt)
        self.assertEqual(self.client.get(first).retried_in, (second.number, rest[1].batch))

    def test_every_transaction_of_an_item_that_was_given_up_can_be_taken_along(self):
        def refuse(item, results):
            raise muster.Dead("never today")

        job = self.apply_served(refuse)
        data = retail_input(1200)
        batch = self.client.wait(self.client.submit(job.name, data), timeout=READY_SECONDS)
        self.assertEqual(batch.dead_lettered, 1200)
        dead = list(self.client.dead_letters(batch))
        self.assertEqual([one.line for one in dead], list(range(2, 1202)))
        self.assertEqual([one.record for one in dead], data.read_bytes().splitlines()[1:])
        self.assertEqual({one.reason for one in dead}, {"never today"})

    def test_batches_are_found_by_the_labels_that_their_submitter_chose(self):
        job = self.apply_served(retail.bill)
        data = self.retail_rows((3, "0.1", "7", "France"))
        before = datetime.datetime.now(datetime.timezone.utc)
        labels = {"team": "billing", "run": "nightly"}
        first = self.client.wait(self.client.submit(job.name, data, "one", labels=labels),
                                 timeout=READY_SECONDS)
        second = self.client.submit(job.name, data, "two", labels={"team": "tills"})
        self.assertEqual(dict(first.labels), labels)

        def found(**wanted):
            return [batch.number for batch in self.client.list_batches(**wanted)]
        self.assertEqual(found(labels={"team": "billing"}), [first.number])
        self.assertEqual(found(labels={"team": "billing", "run": "hourly"}), [])
        self.assertEqual(found(since=before - datetime.timedelta(minutes=1)),
                         [second.number, first.number])
        self.assertEqual(found(since=before + datetime.timedelta(hours=1)), [])
        self.assertEqual(found(late=True), [])
        with self.assertRaisesRegex(muster.InvalidArgument, "no label"):
            self.client.submit(job.name, data, "three", labels={"a b": ""})


class ScheduleTest(MeshClientTest):
    def test_a_schedule_is_made_paused_resumed_run_and_deleted(self):
        job = self.apply_served(retail.bill)
        data = self.retail_rows((3, "0.1", "7", "France"))
        made = self.client.create_schedule(
            "nightly", job.name, data, cron="0 3 * * 1-5", time_zone="Europe/Berlin",
            catch_up=muster.CatchUp.ALL, labels={"team": "billing"},
            sla=datetime.timedelta(minutes=10))
        self.assertEqual((made.cron, made.time_zone, made.catch_up, made.content_bytes),
                         ("0 3 * * 1-5", "Europe/Berlin", muster.CatchUp.ALL, data.stat().st_size))
        self.assertEqual(self.client.get_schedule("nightly"), made)
        self.assertGreater(made.next, datetime.datetime.now(datetime.timezone.utc))
        self.assertTrue(self.client.pause_schedule("nightly").paused)
        self.assertIsNone(self.client.get_schedule("nightly").next)
        self.assertFalse(self.client.resume_schedule("nightly").paused)
        batch = self.client.run_schedule("nightly", "by-hand")
        self.assertEqual(self.client.run_schedule("nightly", "by-hand").number, batch.number)
        self.assertEqual(dict(batch.labels), {"team": "billing", "schedule": "nightly"})
        self.assertEqual(self.client.wait(batch, timeout=READY_SECONDS).transactions, 1)
        self.assertEqual([found.last_batch for found in self.client.list_schedules()],
                         [batch.number])
        with self.assertRaisesRegex(muster.InvalidArgument, "spec.cron"):
            self.client.create_schedule("wrong", job.name, data, cron="0 24 * * *")
        with self.assertRaisesRegex(muster.MusterError, "another schedule 'nightly'"):
            self.client.create_schedule("nightly", job.name, data, cron="@daily")
        self.client.delete_schedule("nightly")
        with self.assertRaises(muster.NotFound):
            self.client.get_schedule("nightly")

    def test_a_batch_is_submitted_at_its_time(self):
        job = self.apply_served(retail.bill)
        data = self.retail_rows((3, "0.1", "7", "France"))
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)
        self.client.create_schedule("soon", job.name, data, at=soon)
        end = time.monotonic() + READY_SECONDS
        while (found := self.client.get_schedule("soon")).ended is None:
            self.assertLess(time.monotonic(), end)
        self.assertEqual((found.submitted, found.missed, found.failed), (1, 0, 0))
        self.assertEqual(self.client.wait(found.last_batch, timeout=READY_SECONDS).transactions, 1)


class ResumeTest(MeshClientTest):
    def test_an_upload_that_was_cut_goes_on_where_it_was_durable(self):
        data = retail_input(60000)
        size = data.stat().st_size
        job = self.apply_served(retail.bill)
        cut = Cut(self.mesh.server, limit=3 << 20, at_once=False)
        self.addCleanup(cut.close)
        durable = []

        def note(told):
            durable.append(told.durable)
            if told.durable >= 1 << 20:
                cut.cut()

        client = self.connect(cut.address)
        with open(data, "rb") as file:
            pieces = iter(lambda: file.read(12345), b"")  # which cannot be read twice
            batch = client.submit(job.name, pieces, "march", note)
        self.assertTrue(cut.full.is_set())
        self.assertEqual(durable, sorted(durable))
        # A MiB at least was durable when the upload was cut.
        self.assertLess(cut.passed, size - (1 << 19))
        self.assert_totals(self.client.wait(batch, timeout=READY_SECONDS), data, 60000)
        self.assertEqual(len(list(self.client.list_batches())), 1)

    def test_a_watch_goes_on_after_its_initiator_was_killed(self):
        data = retail_input(4000)
        may_bill = threading.Event()
        self.addCleanup(may_bill.set)

        def billed_later(item, results):
            may_bill.wait()
            retail.bill(item, results)

        job = self.apply_served(billed_later)
        watch = self.client.watch(self.client.submit(job.name, data))
        seen = [next(watch)]
        self.assertFalse(seen[0].complete)
        self.mesh.initiator.kill()
        restarting = threading.Thread(target=self.mesh.initiator.restart)
        restarting.start()
        may_bill.set()
        seen += watch
        restarting.join()
        for before, after in itertools.pairwise(seen):
            self.assertLess(before.revision, after.revision)
        self.assert_totals(seen[-1], data, 4000)


class RefusalTest(MeshClientTest):
    def test_a_job_with_mistakes_is_refused_line_by_line(self):
        text = (EXAMPLE / "job.yaml").read_text()
        with self.assertRaises(muster.InvalidJob) as refused:
            self.client.apply_job(text.replace("format: csv", "format: cvs").replace("keys:", "key:"))
        error = refused.exception
        self.assertEqual([violation.field for violation in error.violations], ["definition"])
        lines = text.splitlines()
        self.assertGreaterEqual(len(error.problems), 3)
        self.assertEqual(
            {line for line, said in enumerate(lines, 1) if "format:" in said or "keys:" in said}
            - {problem.line for problem in error.problems}, set())

    def test_what_is_wrong_with_a_submission_names_the_field_or_the_job(self):
        with self.assertRaises(muster.InvalidArgument) as refused:
            self.client.submit("retail", b"content", request_id="x" * 513)
        [violation] = refused.exception.violations
        self.assertEqual(violation.field, "header.request_id")
        with self.assertRaisesRegex(muster.NotFound, "no job 'retail'") as unknown:
            self.client.submit("retail", b"content")
        self.assertEqual((unknown.exception.reason, dict(unknown.exception.facts)),
                         ("NO_SUCH_JOB", {"job": "retail"}))
        with self.assertRaises(muster.NotFound):
            self.client.get(1)

    def test_the_receipt_of_a_cancelled_batch_says_so_and_a_complete_one_stays(self):
        begun, may_bill = threading.Event(), threading.Event()
        self.addCleanup(may_bill.set)

        def billed_later(item, results):
            begun.set()
            may_bill.wait()
            retail.bill(item, results)

        job = self.apply_served(billed_later)
        batch = self.client.submit(job.name, self.retail_rows((3, "0.1", "7", "France")))
        self.assertTrue(begun.wait(READY_SECONDS))
        with self.assertRaises(muster.DeadlineExceeded):
            self.client.wait(batch, timeout=0.2)
        with self.assertRaisesRegex(muster.FailedPrecondition, "0 of its 1 items"):
            self.client.receipt(batch)
        self.assertEqual(self.client.cancel(batch, "a mistake").state, muster.BatchState.CANCELLED)
        self.assertEqual(self.client.wait(batch).state, muster.BatchState.CANCELLED)
        self.assertEqual(self.client.get(batch).cancel_reason, "a mistake")
        receipt = self.client.receipt(batch).text.splitlines()
        for line in ("state cancelled", "cancel_reason a mistake", "transactions 1", "uncounted 1"):
            self.assertIn(line, receipt)
        [cancelled] = self.client.list_batches(states=[muster.BatchState.CANCELLED])
        self.assertEqual(cancelled.number, batch.number)
        may_bill.set()
        again = self.client.wait(
            self.client.submit(job.name, self.retail_rows((5, "0.1", "7", "France"))),
            timeout=READY_SECONDS)
        with self.assertRaises(muster.FailedPrecondition):
            self.client.cancel(again)


class ExampleTest(MeshClientTest):
    def test_the_example_is_served_submitted_and_reported_by_its_programs(self):
        data = retail_input(4000)
        server = subprocess.Popen([sys.executable, EXAMPLE / "handler.py", f"{LOOPBACK}:0"],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        address = server.stdout.readline().removeprefix("listening on ").strip()
        done = subprocess.run(
            [sys.executable, EXAMPLE / "submit.py", data, self.write("job.yaml", self.job_at(address))],
            env={**os.environ, "MUSTER_SERVER": self.mesh.server}, capture_output=True, text=True,
            timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("batch 1: 4000 of 4000 transactions", done.stdout)
        self.assert_totals(self.client.get(1), data, 4000)
        server.terminate()
        self.assertEqual(server.wait(READY_SECONDS), 0)

    def test_the_example_says_in_a_line_what_is_wrong(self):
        done = subprocess.run([sys.executable, EXAMPLE / "submit.py", "none.csv"],
                              env={**os.environ, "MUSTER_SERVER": self.mesh.server},
                              capture_output=True, text=True, timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^submit\.py: [^\n]*No such file or directory: 'none\.csv'\n$")


class HandlerRefusalTest(MeshClientTest):
    def test_a_job_that_its_handler_refuses_is_in_trouble_until_it_does_not(self):
        data = self.retail_rows((3, "0.1", "7", "France"))
        server = muster.serve_handler(retail.bill, version="1", listen=f"{LOOPBACK}:0",
                                      columns=["nowhere"])
        job = self.client.apply_job(self.job_at(server.address))
        self.client.submit(job.name, data)
        end = time.monotonic() + READY_SECONDS
        while "nowhere" not in (said := self.ask("doctor").stdout):
            self.assertLess(time.monotonic(), end, said)
        self.assertRegex(said, r"wrong: job retail_server: processor \S+ cannot work for it: ")
        server.stop(0)
        # Another definition has it tried at once.
        self.apply_served(retail.bill)
        batch = self.client.wait(self.client.submit(job.name, data, "again"), timeout=READY_SECONDS)
        self.assert_totals(batch, data, 1)

    def test_a_local_run_ends_when_the_handler_refuses_the_job(self):
        server = muster.serve_handler(retail.bill, version="1", listen=f"{LOOPBACK}:0",
                                      columns=["nowhere"])
        self.addCleanup(server.stop, 0)
        job = self.write("job.yaml", self.job_at(server.address))
        done = self.muster("run", job, "--input", self.retail_rows((3, "0.1", "7", "France")))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"job\.yaml: the handler refuses the job: .*nowhere")

    def test_a_local_run_calls_no_other_host_in_plaintext(self):
        job = self.write("job.yaml", self.job_at("bills.example.org:7800"))
        done = self.muster("run", job, "--input", self.retail_rows((3, "0.1", "7", "France")))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("needs TLS (--handler-tls-roots) or --allow-plaintext", done.stderr)


class SecureHandlerTest(MeshClientTest):
    """Processors and a handler that ask each other for certificates."""

    def make_mesh(self):
        self.processor = make_certificate(self.folder, "processor")
        self.handler = make_certificate(self.folder, "handler")
        shown = {"--handler-tls-cert": self.processor[0], "--handler-tls-key": self.processor[1],
                 "--handler-tls-roots": self.handler[0]}

        class TrustingMesh(Mesh):
            def start_processors(self):
                options = [each for option in shown.items() for each in option]
                return [self.start_role("processor", None, "--threads", 1, *options)
                        for _ in range(2)]

        return TrustingMesh(self.folder, self.nats_server, self.nats_servers)

    def test_a_batch_is_billed_by_a_handler_that_is_called_over_tls(self):
        data = retail_input(5000)
        job = self.apply_served(retail.bill, certificate=self.handler[0], key=self.handler[1],
                                ca=self.processor[0])
        batch = self.client.wait(self.client.submit(job.name, data), timeout=READY_SECONDS)
        self.assert_totals(batch, data, 5000)


class TrustTest(MeshTest):
    def start_mesh(self):
        pass  # the test starts what it is about

    def test_a_client_asks_only_servers_whose_certificate_it_trusts(self):
        files = make_certificate(self.folder, "initiator")
        self.mesh.start_nats().await_ready()
        # It demands a certificate of its clients, too; here, the same one.
        self.mesh.start_role("initiator", self.mesh.server, "--tls-cert", files[0], "--tls-key",
                             files[1], "--tls-roots", files[0]).await_ready()
        with muster.Client(self.mesh.server, ca=files[0], certificate=files[0],
                           key=files[1]) as client:
            self.assertEqual(list(client.list_batches()), [])
        for mistrust in ({}, {"ca": files[0]}):
            with muster.Client(self.mesh.server, timeout=5, **mistrust) as client:
                with self.assertRaises((muster.Unavailable, muster.DeadlineExceeded)):
                    list(client.list_batches())


if __name__ == "__main__":
    unittest.main(verbosity=2)
