# SPDX-License-Identifier: Apache-2.0
"""One list of scenarios that every client passes, on one mesh of real programs: see README.md here.

    interface_test.py CLIENT     runs each scenario with the client: python, go or typescript. 77: it is not built
"""

import decimal
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/integration"))

import harness
from mesh import LOOPBACK, NATS_SERVERS, READY_SECONDS, Cut, Mesh, free_address
from muster.v1 import mesh_service_pb2, mesh_service_pb2_grpc

HERE = pathlib.Path(__file__).resolve().parent
RECORDS = [{"customer": "ada", "amount": "19.99"}, {"customer": "ben", "amount": "5"},
           {"customer": "ada", "amount": "0.01"}, {"customer": "dora", "amount": "five"},
           {"customer": "ben", "amount": "0.125"}]
OUTPUTS = "outputs: {columns: {customer: text, paid: decimal(2), cents: int}}\n"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def adapters():
    """The command of each client's adapter, by the client's name; None: the client is not built."""
    go = os.environ.get("MUSTER_GO_CLIENT")
    typescript = os.environ.get("MUSTER_TYPESCRIPT_CLIENT")
    return {
        "python": [sys.executable, str(ROOT / "clients/python/tests/interface_adapter.py")],
        "go": [f"{go}/interfaceadapter"] if go else None,
        "typescript": ["node", f"{typescript}/dist/tests/interface_adapter.js"] if typescript else None,
    }


class Refused(Exception):
    """A client's call has failed; `error` is what its adapter says of it."""

    def __init__(self, error):
        super().__init__(f"{error['code']}: {error['message']}")
        self.error = error
        self.code = error["code"]


class Adapter:
    """A client in its own process, which does one call after the other."""

    def __init__(self, command):
        self.command = command
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()

    def __call__(self, call, on_news=lambda news: None, **arguments):
        """The answer; `on_news` hears what comes before it: what is durable of an upload, statuses of a watch."""
        with self.lock:
            self.process.stdin.write(json.dumps({"call": call, **arguments}) + "\n")
            self.process.stdin.flush()
            while line := self.process.stdout.readline():
                said = json.loads(line)
                if "error" in said:
                    raise Refused(said["error"])
                if "answer" in said:
                    return said["answer"]
                on_news(said)
        raise AssertionError(f"{self.command} has ended during {call}")

    def close(self):
        self.process.stdin.close()
        self.process.wait(READY_SECONDS)
        self.process.stdout.close()


class Handler:
    """The tests' handler, served by a client until `stop`."""

    def __init__(self, command):
        self.process = subprocess.Popen([*command, "serve", f"{LOOPBACK}:0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        said = self.process.stdout.readline()
        self.address = said.removeprefix("listening on ").strip()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self):
        """Its exit code."""
        return self.process.wait(READY_SECONDS)

    def stop(self):
        if self.process.poll() is None:
            self.terminate()
        self.wait()
        self.process.stdout.close()


class Watch:
    """A client's watch of a batch, beside what the test does."""

    def __init__(self, adapter, batch):
        self.seen = []
        self.heard = threading.Condition()
        self.ended = False
        self.thread = threading.Thread(target=self.run, args=(adapter, batch))
        self.thread.start()

    def run(self, adapter, batch):
        try:
            adapter("watch", batch=batch, on_news=self.hear)
        finally:
            with self.heard:
                self.ended = True
                self.heard.notify_all()

    def hear(self, news):
        with self.heard:
            self.seen.append(news["status"])
            self.heard.notify_all()

    def await_status(self, fits):
        """The first status that fits."""
        def found():
            return next(filter(fits, self.seen), None)
        with self.heard:
            self.heard.wait_for(lambda: self.ended or found(), READY_SECONDS)
            if found() is None:
                raise AssertionError(f"no such status: {self.seen}")
            return found()

    def await_end(self):
        """All statuses."""
        self.thread.join(READY_SECONDS)
        if self.thread.is_alive():
            raise AssertionError(f"the watch goes on after {self.seen[-1:]}")
        return self.seen


class InterfaceTest(unittest.TestCase):
    """What the scenarios of a client share."""

    client = "python"

    @classmethod
    def setUpClass(cls):
        cls.command = adapters()[cls.client]
        cls.shared = Shared()
        cls.addClassCleanup(cls.shared.close)
        cls.shared.start()
        cls.ask = Adapter(cls.command)
        cls.addClassCleanup(cls.ask.close)
        cls.handler = Handler(cls.command)
        cls.addClassCleanup(cls.handler.stop)

    def setUp(self):
        self.folder = self.shared.folder / f"{self.client}-{self._testMethodName}"
        self.folder.mkdir()
        self.connect()

    def connect(self, **options):
        self.ask("open", **{"server": self.shared.mesh.server, "timeout": 20, **options})

    def apply(self, name, address=None, more="", **values):
        """Applies the job of the scenarios, with `more` keys."""
        job = (HERE / "job.yaml").read_text(encoding="utf-8") + more
        for key, value in {"NAME": f"{name}_{self.client}", "ADDRESS": address or self.handler.address,
                           "PIPE": self.folder / "gate", **values}.items():
            self.assertIn(key, job)
            job = job.replace(key, str(value))
        return self.ask("apply_job", definition=job)

    def refused(self, code, call, **arguments):
        with self.assertRaises(Refused) as caught:
            self.ask(call, **arguments)
        self.assertEqual(caught.exception.code, code, caught.exception)
        return caught.exception.error

    def submit_and_wait(self, job, records, **how):
        batch = self.ask("submit", job=job, records=records, **how)
        return self.ask("wait", batch=batch["number"], timeout=READY_SECONDS)


class ScenarioTest(InterfaceTest):
    """What every client does."""

    def test_records_are_added_up_to_exact_totals_and_what_is_no_amount_is_rejected(self):
        job = self.apply("totals")
        self.assertEqual((job["name"], job["columns"]), (f"totals_{self.client}", ["customer", "amount"]))
        self.assertEqual(job["groups"], [{"name": "by_customer", "keys": ["customer"], "measures": [
            ["spent", False, 2], ["purchases", True, 0]]}])
        batch = self.submit_and_wait(job["name"], RECORDS)
        self.assertEqual((batch["state"], batch["over"], batch["problem"]), ("complete", True, ""))
        self.assertEqual((batch["transactions"], batch["aggregated"], batch["rejected"],
                          batch["dead_lettered"], batch["committed"]), (5, 3, 2, 0, 5))
        number = batch["number"]
        rows = [(row["keys"], {name: decimal.Decimal(sum) for name, sum in row["measures"].items()})
                for row in self.ask("report", batch=number, group="by_customer")]
        self.assertEqual(rows, [({"customer": "ada"}, {"spent": 20, "purchases": 2}),
                                ({"customer": "ben"}, {"spent": 5, "purchases": 1})])
        found = self.ask("rejections", batch=number)
        self.assertEqual([line for _, line, *_ in found], [4, 5])
        self.assertRegex(found[0][2], "^(amount|spent): not a number$")
        self.assertIn("more than 2 decimals", found[1][2])
        receipt = self.ask("receipt", batch=number).splitlines()
        for line in ("aggregated 3", "rejected 2", "dead_lettered 0"):
            self.assertIn(line, receipt)
        self.assertEqual(self.ask("get", batch=number)["aggregated"], 3)
        self.assertEqual([told["number"] for told in self.ask(
            "list", job=job["name"], states=["complete", "open"])], [number])
        self.assertEqual(self.ask("list", job=job["name"], states=["cancelled"]), [])
        self.assertIn("by_customer", self.refused("NOT_FOUND", "report", batch=number, group="by_planet")["message"])

    def test_what_a_handler_returns_comes_back_typed_and_in_the_order_of_the_input(self):
        job = self.apply("returned", more=OUTPUTS)
        self.assertEqual(job["outputs"], [["customer", "text", 0], ["paid", "decimal", 2], ["cents", "int", 0]])
        batch = self.submit_and_wait(job["name"], [
            *RECORDS, {"customer": "zoë", "amount": "0"}, {"customer": "ada", "amount": "90071992547409.93"}])
        self.assertEqual((batch["aggregated"], batch["rejected"]), (5, 2))
        records = self.output(batch["number"])
        self.assertEqual([line for line, _ in records], [1, 2, 3, 6, 7])
        values = [told for _, told in records]
        self.assertEqual(values[0], {"customer": ["text", "ada"], "paid": ["decimal", "19.99"], "cents": ["int", "1999"]})
        self.assertEqual(values[3], {"customer": ["text", "zoë"], "paid": None, "cents": ["int", "0"]})
        # Neither fits into 53 bits.
        self.assertEqual(values[4]["cents"], ["int", "9007199254740993"])
        self.assertEqual(values[4]["paid"], ["decimal", "90071992547409.93"])
        found = self.ask("rejections", batch=batch["number"])
        self.assertEqual([line for _, line, *_ in found], [4, 5])
        self.assertIn("decimals", found[1][2])
        plain = self.submit_and_wait(self.apply("no_returns")["name"], RECORDS)
        self.assertIn("has no outputs", self.refused("NOT_FOUND", "output", batch=plain["number"])["message"])

    def test_the_output_is_read_on_after_the_controller_was_killed(self):
        names = [f"{number:04} " + "x" * 1000 for number in range(3000)]
        batch = self.submit_and_wait(self.apply("much_returned", more=OUTPUTS)["name"],
                                     [{"customer": name, "amount": "1"} for name in names])
        seen = []

        def hear(news):
            if not seen:
                self.shared.mesh.controller.kill()
                self.shared.mesh.controller.restart()
            seen.append(news["record"])

        self.ask("output", batch=batch["number"], on_news=hear)
        self.assertEqual([(line, told["customer"][1]) for line, told in seen], list(enumerate(names, 1)))

    def test_the_output_waits_for_a_controller_that_is_not_listed(self):
        batch = self.submit_and_wait(self.apply("unlisted", more=OUTPUTS)["name"], RECORDS)
        controller = self.shared.mesh.controller
        controller.stop()
        self.shared.await_controllers(0)
        reader = Adapter(self.command)
        self.addCleanup(reader.close)
        reader("open", server=self.shared.mesh.server, timeout=2, patience=0)
        with self.assertRaises(Refused) as caught:
            reader("output", batch=batch["number"])
        self.assertEqual(caught.exception.code, "UNAVAILABLE")
        self.assertIn("has heard of no controller: start one", str(caught.exception))
        seen = []
        reader("open", server=self.shared.mesh.server, timeout=2, patience=READY_SECONDS)
        reading = threading.Thread(
            target=lambda: reader("output", batch=batch["number"], on_news=seen.append))
        reading.start()
        self.addCleanup(reading.join)
        controller.restart()
        reading.join(READY_SECONDS)
        self.assertEqual([news["record"][0] for news in seen], [1, 2, 3])

    def output(self, batch):
        records = []
        self.ask("output", batch=batch, on_news=lambda news: records.append(news["record"]))
        return records

    def test_what_is_not_in_the_results_comes_back_with_its_record(self):
        # More than a page of rejections has, and more than a message has of their records.
        lines = [json.dumps({"customer": "ada", "amount": "five", "note": f"{number:04}" + "y" * 4000})
                 for number in range(1100)]
        path = self.folder / "rejected.jsonl"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        job = self.apply("failed")["name"]
        batch = self.ask("submit", job=job, path=str(path))
        batch = self.ask("wait", batch=batch["number"], timeout=READY_SECONDS)
        self.assertEqual(batch["rejected"], 1100)
        found = self.ask("rejections", batch=batch["number"])
        self.assertEqual([(line, record) for _, line, _, record, *_ in found], list(enumerate(lines, 1)))
        self.assertEqual(self.ask("dead_letters", batch=batch["number"]), [])
        dead = ['{"customer": "ada", "amount": "1"}', '{"customer": "dead", "amount": "2"}']
        path.write_text("\n".join(dead), encoding="utf-8")
        batch = self.ask("submit", job=job, path=str(path))
        batch = self.ask("wait", batch=batch["number"], timeout=READY_SECONDS)
        self.assertEqual((batch["dead_lettered"], batch["rejected"]), (2, 0))
        found = self.ask("dead_letters", batch=batch["number"])
        self.assertEqual([(item, line, record) for item, line, _, record, *_ in found], [(0, 1, dead[0]), (0, 2, dead[1])])
        self.assertIn("it never works", found[0][2])
        self.refused("NOT_FOUND", "rejections", batch=1 << 40)

    def test_what_was_rejected_is_retried_once_and_the_batches_name_each_other(self):
        job = self.apply("retried")["name"]
        first = self.submit_and_wait(job, RECORDS, labels={"client": self.client})["number"]
        [[number, count, is_new]] = self.ask("retry", batch=first, lines=[5])
        self.assertEqual((count, is_new), (1, True))
        second = self.ask("wait", batch=number, timeout=READY_SECONDS)
        self.assertEqual((second["rejected"], second["retry_of"], second["labels"]), (1, first, {"client": self.client}))
        self.assertEqual(self.ask("retry", batch=first, lines=[5]), [[number, 1, False]])
        [[again, count, is_new]] = self.ask("retry", batch=first)
        self.assertEqual((count, is_new), (1, True))
        self.ask("wait", batch=again, timeout=READY_SECONDS)
        self.assertEqual(self.ask("get", batch=first)["retried_in"], [number, again])
        self.assertEqual([found[4:] for found in self.ask("rejections", batch=first)], [[again, 0], [number, 0]])
        self.assertEqual([(line, of) for _, line, _, _, _, of in self.ask("rejections", batch=number)], [(1, 5)])
        self.assertEqual(self.refused("FAILED_PRECONDITION", "retry", batch=first)["retried"], [])
        self.assertIn("line 1", self.refused("NOT_FOUND", "retry", batch=first, lines=[1])["message"])

    def test_what_a_retry_has_done_before_it_fails_is_told(self):
        batch = self.submit_and_wait(self.apply("half_retried")["name"], [
            *[{"customer": "dora", "amount": "five"}] * 1000, {"customer": "ada", "amount": "1"}])
        error = self.refused("NOT_FOUND", "retry", batch=batch["number"], lines=list(range(1, 1002)))
        self.assertIn("line 1001", error["message"])
        [[number, count, is_new]] = error["retried"]
        self.assertEqual((count, is_new), (1000, True))
        self.assertEqual(self.ask("wait", batch=number, timeout=READY_SECONDS)["retry_of"], batch["number"])

    def test_a_schedule_is_made_paused_resumed_run_and_deleted(self):
        job, name = self.apply("scheduled")["name"], f"nightly-{self.client}"
        made = self.ask("create_schedule", name=name, job=job, records=RECORDS, cron="0 3 * * 1-5",
                        time_zone="Europe/Berlin", catch_up="all", labels={"team": "tills"}, sla=600)
        self.assertEqual({key: made[key] for key in ("name", "job", "cron", "time_zone", "at", "catch_up", "labels",
                                                     "paused", "last_batch", "problem", "ended", "counts")},
                         {"name": name, "job": job, "cron": "0 3 * * 1-5", "time_zone": "Europe/Berlin", "at": None,
                          "catch_up": "all", "labels": {"team": "tills"}, "paused": False, "last_batch": 0,
                          "problem": "", "ended": False, "counts": [0, 0, 0]})
        self.assertGreater(made["next"], time.time())
        self.assertEqual(self.ask("get_schedule", name=name), made)
        paused = self.ask("pause_schedule", name=name)
        self.assertEqual((paused["paused"], paused["next"]), (True, None))
        self.assertFalse(self.ask("resume_schedule", name=name)["paused"])
        batch = self.ask("run_schedule", name=name, run_id="by-hand")
        self.assertEqual(self.ask("run_schedule", name=name, run_id="by-hand")["number"], batch["number"])
        self.assertEqual((batch["labels"], batch["sla"]), ({"team": "tills", "schedule": name}, 600))
        self.assertEqual(self.ask("wait", batch=batch["number"], timeout=READY_SECONDS)["transactions"], len(RECORDS))
        other = self.ask("run_schedule", name=name)
        self.assertGreater(other["number"], batch["number"])
        self.assertEqual([found["last_batch"] for found in self.ask("list_schedules") if found["name"] == name],
                         [other["number"]])
        again = {"name": name, "job": job, "records": RECORDS}
        self.refused("ALREADY_EXISTS", "create_schedule", **again, cron="@daily")
        again["name"] = "wrong"
        self.assertEqual(self.refused("INVALID_ARGUMENT", "create_schedule", **again, cron="0 24 * * *")["fields"],
                         ["spec.cron"])
        path = self.folder / "long.jsonl"
        path.write_bytes(b"x" * ((3 << 20) + 1))
        del again["records"]
        self.assertEqual(self.refused("INVALID_ARGUMENT", "create_schedule", **again, path=str(path),
                                      cron="@daily")["fields"], ["content"])
        self.ask("delete_schedule", name=name)
        self.assertEqual(self.refused("NOT_FOUND", "get_schedule", name=name)["reason"], "NO_SUCH_SCHEDULE")

    def test_a_schedule_is_updated_at_its_revision(self):
        job, name = self.apply("updated")["name"], f"updated-{self.client}"
        made = self.ask("create_schedule", name=name, job=job, records=RECORDS, cron="0 3 * * *", catch_up="all",
                        labels={"team": "tills"})
        self.assertEqual(made["revision"], 1)
        changed = {"name": name, "job": job, "cron": "*/5 * * * *", "labels": {"team": "billing"}}
        now = self.ask("update_schedule", **changed, revision=1)
        self.assertEqual({**made, "revision": 2, "cron": "*/5 * * * *", "catch_up": "once",
                          "labels": {"team": "billing"}, "next": now["next"]}, now)
        self.assertLessEqual(now["next"], time.time() + 300)
        self.assertEqual(self.ask("update_schedule", **changed, revision=1)["revision"], 2)
        changed["cron"] = "@daily"
        self.assertIn("at revision 2, not 1", self.refused("ABORTED", "update_schedule", **changed, revision=1)["message"])
        self.assertEqual(self.ask("update_schedule", **changed)["revision"], 3)
        changed["name"] = "none"
        self.assertEqual(self.refused("NOT_FOUND", "update_schedule", **changed)["reason"], "NO_SUCH_SCHEDULE")
        self.ask("delete_schedule", name=name)

    def test_a_batch_is_submitted_at_its_time(self):
        job, name = self.apply("at_its_time")["name"], f"soon-{self.client}"
        at = time.time() + 2
        made = self.ask("create_schedule", name=name, job=job, records=RECORDS, at=at)
        self.assertAlmostEqual(made["at"], at, places=2)
        end = time.monotonic() + READY_SECONDS
        while not (found := self.ask("get_schedule", name=name))["ended"]:
            self.assertLess(time.monotonic(), end, found)
            time.sleep(0.1)  # no event announces it
        self.assertEqual(found["counts"], [1, 0, 0])
        self.assertEqual(self.ask("wait", batch=found["last_batch"], timeout=READY_SECONDS)["transactions"],
                         len(RECORDS))

    def test_the_events_of_a_stream_come_in_order_again_when_they_fail_and_on_behind_the_checkpoint(self):
        stream, server = f"homes-{self.client}", self.shared.mesh.server
        self.shared.command("stream", "create", stream, "--partitions", "2")
        [[partition, offset]] = self.ask("send", server=server, stream=stream, events=[["home-1", "0"]])
        more = self.ask("send", server=server, stream=stream, events=[["home-1", str(n)] for n in range(1, 20)])
        self.assertEqual(more, [[partition, offset + n] for n in range(1, 20)])
        seen, told = self.process(stream, 20, fail=2)
        self.assertEqual(seen, [[partition, offset + n, "home-1", str(n), ["kind"] if n == 0 else []]
                                for n in range(20)])
        self.assertEqual(told, {"errors": ["handle", "handle"], "reasons": ["shutdown"]})
        other = 1 - partition
        places = self.ask("send", server=server, stream=stream, events=[["home-1", "other"]], partition=other)
        self.assertEqual([place[0] for place in places], [other])
        seen, told = self.process(stream, 1)
        self.assertEqual([event[:4] for event in seen], [[*places[0], "home-1", "other"]])
        self.assertEqual(told["errors"], [])
        for call in ({"call": "send", "events": [["", "x"]]}, {"call": "process", "group": "store", "count": 1}):
            self.refused("NOT_FOUND", server=server, stream="none", **call)

    def test_a_processor_that_is_closed_ends_and_another_goes_on_behind_its_checkpoint(self):
        stream, server = f"closed-{self.client}", self.shared.mesh.server
        self.shared.command("stream", "create", stream, "--partitions", "1")
        sent = self.ask("send", server=server, stream=stream, events=[["home-1", str(n)] for n in range(20)])
        first, _ = self.process(stream, 5, close=True)
        rest, _ = self.process(stream, 15)
        self.assertEqual([event[:2] for event in [*first, *rest]], sent)

    def test_a_processor_of_events_goes_on_after_its_initiator_was_killed(self):
        stream, server = f"cut-{self.client}", self.shared.mesh.server
        self.shared.command("stream", "create", stream, "--partitions", "2")
        sent = self.ask("send", server=server, stream=stream, events=[[f"home-{n}", str(n)] for n in range(40)])
        killed = []

        def hear(_):
            if not killed:
                killed.append(True)
                self.shared.mesh.initiator.kill()
                self.shared.mesh.initiator.restart()

        seen, told = self.process(stream, 40, on_news=hear)
        self.assertEqual({tuple(event[:2]) for event in seen}, {tuple(place) for place in sent})
        self.assertIn("open", told["errors"])

    def process(self, stream, count, on_news=lambda news: None, **how):
        """The events of `stream` that a member of group "store" handled, and what it says at its end."""
        seen = []

        def hear(news):
            seen.append(news["event"])
            on_news(news)

        told = self.ask("process", server=self.shared.mesh.server, stream=stream, group="store", count=count,
                        on_news=hear, **how)
        return seen, told

    def test_a_batch_is_found_by_its_labels_and_its_time(self):
        job = self.apply("labelled")["name"]
        began = time.time()
        numbers = {}
        for month in ("march", "april"):
            batch = self.submit_and_wait(job, RECORDS, request_id=f"{month} of {self.client}, labelled",
                                         labels={"month": month, "client": self.client})
            self.assertEqual(batch["labels"], {"month": month, "client": self.client})
            numbers[month] = batch["number"]

        def found(**by):
            return [told["number"] for told in self.ask("list", **by)]

        self.assertEqual(found(labels={"client": self.client}), [numbers["april"], numbers["march"]])
        self.assertEqual(found(labels={"client": self.client, "month": "march"}), [numbers["march"]])
        self.assertEqual(found(job=job, since=began - 60), [numbers["april"], numbers["march"]])
        self.assertEqual(found(job=job, since=began + 3600), [])
        self.assertEqual(found(job=job, late=True), [])

    def test_a_batch_is_promised_what_its_submitter_asks_for_and_belongs_to_his_trace(self):
        batch = self.submit_and_wait(self.apply("promised")["name"], RECORDS, sla=3600, traceparent=TRACE)
        self.assertEqual((batch["sla"], batch["promised"], batch["late_by"]), (3600, 3600, 0))
        self.assertEqual(batch["traceparent"], TRACE)

    def test_the_same_submission_again_is_the_same_batch(self):
        job = self.apply("same")["name"]
        march = f"march of {self.client}"
        first = self.submit_and_wait(job, RECORDS, request_id=march)
        self.assertEqual(first["request_id"], march)
        self.assertEqual(self.ask("submit", job=job, records=RECORDS, request_id=march)["number"],
                         first["number"])
        error = self.refused("FAILED_PRECONDITION", "submit", job=job, records=RECORDS[1:],
                             request_id=march)
        self.assertEqual((error["reason"], error["facts"]),
                         ("REQUEST_ID_REUSED", {"batch": str(first["number"])}))
        # Without an id the content is it, for the command as for each client.
        path = self.folder / "purchases.jsonl"
        path.write_text('{"customer": "ada", "amount": "1"}\n', encoding="utf-8")
        second = self.ask("submit", job=job, path=str(path))
        told = self.shared.answer("batch", "submit", job, "--input", str(path))
        self.assertEqual(told["batch"], second["number"])
        self.assertEqual([told["number"] for told in self.ask("list", job=job)],
                         [second["number"], first["number"]])

    def test_a_record_is_called_and_what_became_of_it_comes_back(self):
        job = self.apply("called")["name"]
        taken = self.ask("call", job=job, fields={"customer": "ada", "amount": "19.99"})
        self.assertEqual((taken["outcome"], taken["line"], taken["outputs"]), ("accepted", 1, []))
        [row] = self.ask("report", batch=taken["batch"], group="by_customer")
        self.assertEqual(row["measures"], {"spent": "19.99", "purchases": "1"})
        self.assertEqual(self.ask("list", job=job), [])
        self.assertIn(taken["batch"], [told["number"] for told in self.ask("list", job=job, calls=True)])
        refused = self.ask("call", job=job, line='{"customer": "dora", "amount": "five"}')
        self.assertEqual((refused["outcome"], refused["line"]), ("rejected", 1))
        self.assertIn("not a number", refused["reason"])
        dead = self.ask("call", job=job, fields={"customer": "dead", "amount": "1"})
        self.assertEqual(dead["outcome"], "dead_lettered")
        self.assertIn("it never works", dead["reason"])
        once = {"job": job, "fields": {"customer": "ada", "amount": "1"},
                "request_id": f"once of {self.client}"}
        self.assertEqual(self.ask("call", **once), self.ask("call", **once))
        returning = self.apply("returning", more=OUTPUTS)["name"]
        answers = [self.ask("call", job=returning, fields={"customer": "ada", "amount": amount})
                   for amount in ("19.99", "0")]
        self.assertEqual([answer["outputs"] for answer in answers], [
            [{"customer": ["text", "ada"], "paid": ["decimal", "19.99"], "cents": ["int", "1999"]}],
            [{"customer": ["text", "ada"], "paid": None, "cents": ["int", "0"]}]])
        error = self.refused("INVALID_ARGUMENT", "call", job=job, fields={"custmer": "ada"})
        self.assertEqual(error["fields"], ["fields"])

    def test_an_item_is_tried_again_or_given_up_as_its_handler_says(self):
        job = self.apply("outcomes")["name"]
        again = self.submit_and_wait(job, [{"customer": "retry", "amount": "1"}])
        self.assertEqual((again["aggregated"], again["items"], again["attempts"]), (1, 1, 2))
        dead = self.submit_and_wait(job, [{"customer": "dead", "amount": "1"}])
        self.assertEqual((dead["dead_lettered"], dead["attempts"]), (1, 1))

    def test_a_handler_that_is_told_to_end_answers_what_it_has(self):
        handler = Handler(self.command)
        self.addCleanup(handler.stop)
        gate = self.folder / "gate"
        os.mkfifo(gate)
        batch = self.ask("submit", job=self.apply("ended", handler.address)["name"],
                         records=[{"customer": "gate", "amount": "2.50"}])
        # The handler has opened the other end.
        with open(gate, "w", encoding="utf-8"):
            handler.terminate()
        batch = self.ask("wait", batch=batch["number"], timeout=READY_SECONDS)
        self.assertEqual((batch["aggregated"], batch["attempts"]), (1, 1))
        self.assertEqual(handler.wait(), 0)

    def test_why_a_batch_waits_is_said_and_one_that_is_cancelled_ends_its_watch(self):
        batch = self.ask("submit", job=self.apply("waiting")["name"], records=RECORDS, handler_version="gone")
        end = time.monotonic() + READY_SECONDS
        reason = (f"no processor has version gone of the handler of job {batch['job']}, but 1: apply the job "
                  "with version gone again and start a handler server of that version at ")
        while reason not in (problem := self.ask("get", batch=batch["number"])["problem"]):
            self.assertLess(time.monotonic(), end, problem)
            time.sleep(0.1)  # no event announces it
        self.assertIn("(nothing was counted since 20", problem)
        self.assertEqual(self.shared.answer("batch", "get", batch["number"])["problem"], problem)
        watcher = Adapter(self.command)
        self.addCleanup(watcher.close)
        watcher("open", server=self.shared.mesh.server)
        watch = Watch(watcher, batch["number"])
        self.assertEqual(watch.await_status(lambda told: told["problem"])["problem"], problem)
        self.assertEqual(self.refused("DEADLINE_EXCEEDED", "wait", batch=batch["number"], timeout=0.2)["code"],
                         "DEADLINE_EXCEEDED")
        self.refused("FAILED_PRECONDITION", "receipt", batch=batch["number"])
        self.assertEqual(self.ask("cancel", batch=batch["number"], reason="a mistake")["state"], "cancelled")
        last = watch.await_end()[-1]
        self.assertEqual((last["state"], last["over"], last["cancel_reason"]), ("cancelled", True, "a mistake"))
        self.assertIn("state cancelled", self.ask("receipt", batch=batch["number"]).splitlines())

    def test_an_upload_that_was_cut_goes_on_where_it_was_durable(self):
        path = self.folder / "purchases.jsonl"
        line = b'{"customer": "ada", "amount": "1.00", "note": "%0200d"}\n'
        path.write_bytes(b"".join(line % number for number in range(24000)))
        size = path.stat().st_size
        self.assertGreater(size, 5 << 20)
        job = self.apply("cut", free_address())["name"]
        cut = Cut(self.shared.mesh.server, limit=3 << 20, at_once=False)
        self.addCleanup(cut.close)
        self.connect(server=cut.address)
        heard = []

        def hear(news):
            heard.append(news["durable"])
            if news["durable"] >= 1 << 20:
                cut.cut()

        batch = self.ask("submit", job=job, path=str(path), on_news=hear)
        self.assertTrue(cut.full.is_set())
        self.assertEqual(heard, sorted(heard))
        # A MiB at least was durable when the upload was cut.
        self.assertLess(cut.passed, size - (1 << 19))
        self.assertEqual([told["number"] for told in self.ask("list", job=job)], [batch["number"]])
        self.ask("cancel", batch=batch["number"], reason="it was about the upload")

    def test_a_watch_goes_on_after_its_initiator_was_killed(self):
        gate = self.folder / "gate"
        os.mkfifo(gate)
        batch = self.ask("submit", job=self.apply("watched")["name"],
                         records=[{"customer": "gate", "amount": "2.50"}])
        watch = Watch(self.ask, batch["number"])
        with open(gate, "w", encoding="utf-8"):
            watch.await_status(lambda told: not told["over"])
            self.shared.mesh.initiator.kill()
            self.shared.mesh.initiator.restart()
        seen = watch.await_end()
        revisions = [told["revision"] for told in seen]
        self.assertEqual(revisions, sorted(set(revisions)))
        self.assertEqual((seen[-1]["state"], seen[-1]["aggregated"]), ("complete", 1))

    def test_what_is_wrong_with_a_job_or_a_submission_is_named(self):
        error = self.refused("INVALID_ARGUMENT", "apply_job",
                             definition="name: bad\ninput: {format: cvs}\nhandler: {grpc: 'localhost:7800'}\n")
        self.assertEqual(error["fields"], ["definition"])
        self.assertIn(2, [line for line, _, _ in error["problems"]])
        job = self.apply("revised")
        definition = (HERE / "job.yaml").read_text(encoding="utf-8")
        definition = definition.replace("NAME", job["name"]).replace("ADDRESS", self.handler.address)
        self.refused("ABORTED", "apply_job", definition=definition, expected_revision="")
        self.assertEqual(self.ask("apply_job", definition=definition.replace("60s", "50s"),
                                  expected_revision=job["revision"])["name"], job["name"])
        error = self.refused("NOT_FOUND", "submit", job="nowhere", records=RECORDS)
        self.assertEqual((error["reason"], error["facts"]), ("NO_SUCH_JOB", {"job": "nowhere"}))
        error = self.refused("INVALID_ARGUMENT", "submit", job="nowhere", records=RECORDS,
                             request_id="x" * 513)
        self.assertEqual(error["fields"], ["header.request_id"])
        self.refused("NOT_FOUND", "get", batch=1 << 40)

    def test_a_server_that_is_not_there_is_unavailable(self):
        self.connect(server=free_address(), patience=0, timeout=20)
        self.refused("UNAVAILABLE", "get", batch=1)
        self.refused("UNAVAILABLE", "submit", job="totals", records=RECORDS)

    def test_a_caller_is_refused_what_its_certificate_does_not_let_it_do(self):
        server, ca, certificates = self.shared.secure()
        shown = dict(zip(("certificate", "key"), certificates["reader"]))
        self.connect(server=server, ca=ca, **shown)
        self.assertEqual(self.ask("list"), [])
        error = self.refused("PERMISSION_DENIED", "cancel", batch=1, reason="")
        self.assertIn("cn:reader", error["message"])
        # Neither a caller without a certificate nor one that does not trust the server comes through.
        for mistrust in ({"ca": ca}, shown, {}):
            self.connect(server=server, timeout=0.5, **mistrust)
            with self.assertRaises(Refused) as caught:
                self.ask("list")
            self.assertIn(caught.exception.code, ("UNAVAILABLE", "DEADLINE_EXCEEDED"))


class Shared:
    """The mesh of all scenarios, and a second initiator that asks for certificates."""

    def __init__(self):
        self.folder = harness.folder_of_program("muster-interface-")
        self.mesh = Mesh(self.folder, NATS_SERVERS[0], 1)
        self.secured = None

    def start(self):
        """A controller that has not heard of the initiator yet lets the first results lie for 10 s."""
        self.mesh.start()
        with grpc.insecure_channel(self.mesh.reporter) as channel:
            stub = mesh_service_pb2_grpc.MeshServiceStub(channel)
            request = mesh_service_pb2.ListInstancesRequest(role="ROLE_INITIATOR")
            end = time.monotonic() + READY_SECONDS
            while not stub.ListInstances(request, timeout=READY_SECONDS).instances:
                if time.monotonic() > end:
                    raise AssertionError("the controller has heard of no initiator")
                time.sleep(0.05)  # no event announces it

    def await_controllers(self, count):
        """Until the initiator lists so many."""
        with grpc.insecure_channel(self.mesh.server) as channel:
            stub = mesh_service_pb2_grpc.MeshServiceStub(channel)
            request = mesh_service_pb2.ListInstancesRequest(role="ROLE_CONTROLLER")
            end = time.monotonic() + READY_SECONDS
            while len([instance for instance in stub.ListInstances(request, timeout=READY_SECONDS).instances
                       if not instance.leaving]) != count:
                if time.monotonic() > end:
                    raise AssertionError(f"the initiator does not list {count} controllers")
                time.sleep(0.05)  # no event announces it

    def answer(self, *arguments):
        """The JSON object that a command prints."""
        return json.loads(self.command(*arguments, "-o", "json"))

    def command(self, *arguments):
        """What a command prints."""
        return subprocess.run([harness.MUSTER, *map(str, arguments), "--server", self.mesh.server],
                              capture_output=True, text=True, check=True, timeout=READY_SECONDS).stdout

    def secure(self):
        """The address of an initiator with a policy, the path of its authority, and those of the
        certificates and keys of callers."""
        if self.secured is None:
            certificates = {name: self.certificate(name) for name in ("initiator", "reader")}
            trusted = self.folder / "trusted.pem"
            trusted.write_bytes(b"".join(pathlib.Path(files[0]).read_bytes() for files in certificates.values()))
            address, data = free_address(), self.folder / "secured"
            mesh = Mesh(data, NATS_SERVERS[0], 1)
            data.mkdir()
            mesh.start_nats().await_ready()
            self.programs = mesh
            mesh.start_role("initiator", address, "--tls-cert", certificates["initiator"][0], "--tls-key",
                            certificates["initiator"][1], "--tls-roots", trusted, "--policy",
                            HERE / "policy.yaml").await_ready()
            self.secured = address, certificates["initiator"][0], certificates
        return self.secured

    def certificate(self, name):
        """Paths of a certificate for this machine, which is its own root, and of its key."""
        files = [str(self.folder / f"{name}.{end}") for end in ("pem", "key")]
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-out", files[0],
             "-keyout", files[1]], check=True, capture_output=True, timeout=READY_SECONDS)
        return files

    def close(self):
        self.mesh.kill()
        if self.secured is not None:
            self.programs.kill()


def main():
    client = sys.argv.pop(1)
    if adapters()[client] is None:
        print(f"the client in {client} is not built; scripts/test builds it where its tools are")
        sys.exit(harness.SKIPPED)
    InterfaceTest.client = client
    unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
