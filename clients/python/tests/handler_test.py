# SPDX-License-Identifier: Apache-2.0
"""Handlers as processors meet them: by the protocol, message by message."""

import datetime
import decimal
import pathlib
import queue
import ssl
import subprocess
import tempfile
import threading
import unittest

import grpc

import muster
from muster._results import Results
from muster._report import Group, Measure
from muster.v1 import handler_service_pb2, handler_service_pb2_grpc, job_schema_pb2

SECONDS = 30
GROUPS = {
    "by_customer": Group("by_customer", ("customer",),
                         (Measure("spent", False, 2), Measure("purchases", True, 0))),
    "total": Group("total", ("all",), (Measure("spent", False, 2),))}


def spent(amount, customer="Ada", purchases=1):
    return {"by_customer": muster.Row({"customer": customer},
                                      {"spent": amount, "purchases": purchases})}


class ResultsTest(unittest.TestCase):
    def setUp(self):
        self.results = Results(GROUPS, frozenset({1, 2}))

    def sums(self):
        return {(group.group, *row.keys): list(row.measures)
                for group in self.results.to_proto().groups for row in group.rows}

    def test_rows_with_the_same_keys_are_added_up_exactly(self):
        self.results.add(spent(decimal.Decimal("0.1")))
        self.results.add(spent(decimal.Decimal("0.2")))
        self.results.add(spent(-3, "Bob"))
        self.assertEqual(self.sums(), {("by_customer", "Ada"): ["0.30", "2"],
                                       ("by_customer", "Bob"): ["-3.00", "1"]})

    def test_records_of_rejected_lines_are_left_out(self):
        columns = (muster.OutputColumn("note", "text", 0), muster.OutputColumn("count", "int", 0),
                   muster.OutputColumn("total", "decimal", 2))
        results = Results(GROUPS, frozenset({1, 2}), columns)
        results.output(2, {"note": "b", "count": None, "total": decimal.Decimal("1E+2")})
        results.output(1, {"note": "a", "count": -3, "total": 7})
        results.reject(2, "no")
        [output] = results.to_proto().outputs
        self.assertEqual((output.line, list(output.fields)), (1, ["a", "-3", "7.00"]))
        results = Results(GROUPS, frozenset({1}), columns)
        results.output(1, {"note": "", "count": 0, "total": decimal.Decimal("1E+2")})
        self.assertEqual(list(results.to_proto().outputs[0].fields), ["", "0", "100.00"])

    def test_a_record_of_other_columns_or_inexact_numbers_is_a_mistake(self):
        results = Results(GROUPS, frozenset({1}), (muster.OutputColumn("total", "decimal", 2),))
        for values, mistake in (({}, KeyError), ({"total": 1, "more": 1}, KeyError),
                                ({"total": 0.5}, TypeError), ({"total": True}, TypeError),
                                ({"total": "1"}, TypeError)):
            with self.subTest(values=values), self.assertRaises(mistake):
                results.output(1, values)
        with self.assertRaises(KeyError):
            results.output(2, {"total": 1})

    def test_a_record_that_does_not_fit_its_columns_is_refused(self):
        columns = (muster.OutputColumn("note", "text", 0), muster.OutputColumn("count", "int", 0),
                   muster.OutputColumn("total", "decimal", 2))
        results = Results(GROUPS, frozenset({1}), columns)
        fitting = {"note": "x" * (65536 - 4 - 4 - 4 - 5 - 4), "count": 7, "total": decimal.Decimal("0.5")}
        for values, reason in (({"count": 2**63}, "count: overflows"),
                               ({"count": decimal.Decimal("0.5")}, "count: 0.5 needs more than 0"),
                               ({"total": decimal.Decimal("0.125")}, "total: 0.125 needs more than 2"),
                               ({"note": "a\0b"}, "note: a NUL is not allowed"), ({"note": "\ud800"}, "note: not UTF-8"),
                               ({"note": fitting["note"] + "xx"}, "a record of 65538 bytes; at most 65536")):
            with self.subTest(reason), self.assertRaisesRegex(muster.Unfit, reason):
                results.output(1, {**fitting, **values})
        self.assertEqual(len(results.to_proto().outputs), 0)
        results.output(1, {**fitting, "count": 2**63 - 1, "note": ""})
        results.output(1, fitting)
        self.assertEqual([list(output.fields[1:]) for output in results.to_proto().outputs],
                         [[str(2**63 - 1), "0.50"], ["7", "0.50"]])

    def test_sums_of_38_digits_are_not_rounded(self):
        large = decimal.Decimal("9" * 36 + ".98")
        self.results.add(spent(large))
        self.results.add(spent(decimal.Decimal("0.01")))
        self.assertEqual(self.sums()["by_customer", "Ada"][0], "9" * 36 + ".99")
        with self.assertRaisesRegex(muster.Unfit, "spent: overflows"):
            self.results.add(spent(decimal.Decimal("0.01")))

    def test_more_decimals_than_the_job_keeps_are_refused_and_not_rounded(self):
        with self.assertRaisesRegex(muster.Unfit, "0.125 needs more than 2 decimals"):
            self.results.add(spent(decimal.Decimal("0.125")))
        self.results.add(spent(decimal.Decimal("0.1200")))
        self.assertEqual(self.sums()["by_customer", "Ada"][0], "0.12")

    def test_a_reason_does_not_write_out_a_long_number(self):
        for amount in ("1E-999999", "0." + "3" * 1000):
            with self.assertRaises(muster.Unfit) as refused:
                self.results.add(spent(decimal.Decimal(amount)))
            self.assertLess(len(str(refused.exception)), 100)

    def test_what_is_no_exact_number_is_refused(self):
        for amount in ("NaN", "Infinity", "1e999999"):
            with self.assertRaises(muster.Unfit):
                self.results.add(spent(decimal.Decimal(amount)))
        for amount in (0.5, True, "1"):
            with self.subTest(amount=amount), self.assertRaisesRegex(TypeError, "spent: a .+ is not exact"):
                self.results.add(spent(amount))
        with self.assertRaisesRegex(muster.Unfit, "purchases: overflows"):
            self.results.add(spent(1, purchases=2**63))
        self.assertEqual(self.sums(), {})

    def test_a_transaction_counts_in_all_its_groups_or_in_none(self):
        with self.assertRaises(muster.Unfit):
            self.results.add({**spent(1), "total": muster.Row(
                {"all": ""}, {"spent": decimal.Decimal("0.001")})})
        self.assertEqual(self.sums(), {})

    def test_a_key_that_is_too_long_is_refused(self):
        with self.assertRaisesRegex(muster.Unfit, "customer: longer"):
            self.results.add(spent(1, "x" * 1025))

    def test_a_key_that_no_message_or_report_can_have_is_refused(self):
        for key, reason in (("\udcff", "customer: not UTF-8 text"), ("a\0", "customer: a NUL is not allowed")):
            with self.subTest(key=key), self.assertRaisesRegex(muster.Unfit, reason):
                self.results.add(spent(1, key))

    def test_a_key_that_is_no_text_is_a_mistake_of_the_program(self):
        for key in (b"Ada", 7, None):
            with self.subTest(key=key), self.assertRaisesRegex(TypeError, "customer: a .+ is no text"):
                self.results.add(spent(1, key))

    def test_rows_that_are_none_of_the_job_are_a_mistake_of_the_program(self):
        for rows in ({"nobody": muster.Row({}, {})}, {"total": muster.Row({}, {"spent": 1})}):
            with self.assertRaises(KeyError):
                self.results.add(rows)
        with self.assertRaises(KeyError):
            self.results.reject(3, "there is no such line")


def total(item, results):
    """What most tests serve."""
    for transaction in item.transactions:
        try:
            results.add(spent(decimal.Decimal(transaction["amount"]), transaction["customer"]))
        except decimal.InvalidOperation:
            results.reject(transaction.line, "amount: not an amount")


class Processor:
    """A processor's side of one call."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.requests = queue.SimpleQueue()
        self.call = handler_service_pb2_grpc.HandlerServiceStub(self.channel).Work(
            iter(self.requests.get, None), timeout=SECONDS)

    def greet(self, protocol_version=1, columns=("customer", "amount")):
        measures = [job_schema_pb2.MeasureSchema(name="spent", type="MEASURE_TYPE_DECIMAL", scale=2),
                    job_schema_pb2.MeasureSchema(name="purchases", type="MEASURE_TYPE_INT")]
        schema = job_schema_pb2.JobSchema(job="purchases", columns=columns, groups=[
            job_schema_pb2.GroupSchema(name="by_customer", keys=["customer"], measures=measures)])
        self.requests.put(handler_service_pb2.WorkRequest(hello=handler_service_pb2.Hello(
            protocol_version=protocol_version, schema=schema)))
        return next(self.call).ready

    def give(self, name, *rows, **more):
        self.requests.put(handler_service_pb2.WorkRequest(item=handler_service_pb2.HandlerItem(
            item=name, attempt=1, **more, transactions=[
                handler_service_pb2.HandlerTransaction(line=line, fields=fields)
                for line, fields in enumerate(rows, 2)])))

    def abandon(self, name):
        self.requests.put(handler_service_pb2.WorkRequest(
            abandon=handler_service_pb2.Abandon(item=name)))

    def answer(self):
        return next(self.call).answer

    def leave(self):
        self.requests.put(None)

    def close(self):
        self.leave()
        self.call.cancel()
        self.channel.close()


class HandlerServerTest(unittest.TestCase):
    def serve(self, work=total, **options):
        self.server = muster.serve_handler(
            work, version="3", listen="127.0.0.1:0", columns=["customer", "amount"], **options)
        self.addCleanup(self.server.stop, 0)
        return self.call()

    def call(self):
        processor = Processor(self.server.address)
        self.addCleanup(processor.close)
        return processor

    def test_items_are_added_up_and_answered(self):
        processor = self.serve(name="totals", concurrency=2)
        ready = processor.greet()
        self.assertEqual((ready.name, ready.version, ready.concurrency), ("totals", "3", 2))
        processor.give("1/7", ("Ada", "1.50"), ("Bob", "x"), ("Ada", "2"))
        answer = processor.answer()
        self.assertEqual(answer.item, "1/7")
        [group] = answer.ok.groups
        [row] = group.rows
        self.assertEqual((list(row.keys), list(row.measures)), (["Ada"], ["3.50", "2"]))
        [rejected] = answer.ok.rejected
        self.assertEqual((rejected.line, rejected.reason), (3, "amount: not an amount"))

    def test_a_call_whose_processor_leaves_ends_with_ok_when_all_is_answered(self):
        may_end = threading.Event()
        processor = self.serve(lambda item, results: may_end.wait(SECONDS))
        processor.greet()
        processor.give("1/1")
        processor.leave()
        may_end.set()
        self.assertEqual(processor.answer().item, "1/1")
        self.assertEqual(list(processor.call), [])
        self.assertEqual(processor.call.code(), grpc.StatusCode.OK)

    def test_a_handler_knows_to_which_trace_its_item_belongs(self):
        seen = []
        processor = self.serve(
            lambda item, results: seen.append((item.traceparent, item.tracestate)))
        processor.greet()
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        processor.give("1/1", ("Ada", "1"), traceparent=trace, tracestate="a=b")
        processor.answer()
        processor.give("1/2", ("Ada", "1"))
        processor.answer()
        self.assertEqual(seen, [(trace, "a=b"), ("", "")])

    def test_what_a_handler_raises_becomes_of_its_item_alone(self):
        outcomes = {"1/1": muster.Retry("no rates", datetime.timedelta(seconds=2)),
                    "1/2": muster.Defer("not now"), "1/3": muster.Dead("never"),
                    "1/4": ZeroDivisionError("oops")}

        def fail(item, results):
            raise outcomes[item.name]

        processor = self.serve(fail)
        processor.greet()
        with self.assertLogs("muster", "ERROR"):
            for name in outcomes:
                processor.give(name)
            retry, defer, dead, bug = [processor.answer() for _ in outcomes]
        self.assertEqual((retry.retry.why, retry.retry.after.seconds), ("no rates", 2))
        self.assertEqual((defer.defer.why, defer.defer.HasField("after")), ("not now", False))
        self.assertEqual(dead.dead.why, "never")
        self.assertEqual(bug.retry.why, "ZeroDivisionError: oops")

    def answers_to(self, raised):
        """What becomes of items whose handler raises these."""
        def fail(item, results):
            raise raised[int(item.name)]

        processor = self.serve(fail)
        processor.greet()
        with self.assertLogs("muster", "ERROR"):
            for place in range(len(raised)):
                processor.give(str(place))
            return [processor.answer() for _ in raised]

    def test_an_item_is_answered_whatever_is_raised(self):
        class Speechless(Exception):
            def __str__(self):
                raise ValueError("no words")

        ended, speechless, none, seconds, error, empty = self.answers_to([
            SystemExit(3), Speechless(), muster.Dead(None), muster.Retry("soon", 5),
            muster.Dead(ValueError("broken")), muster.Defer("")])
        self.assertEqual(ended.retry.why, "SystemExit: 3")
        self.assertEqual(speechless.retry.why, "Speechless")
        self.assertEqual(none.dead.why, "None")
        self.assertRegex(seconds.retry.why, "^TypeError: ")
        self.assertEqual(error.dead.why, "ValueError: broken")
        self.assertEqual(empty.defer.why, "no reason given")

    def test_work_that_only_begins_when_it_is_run_is_a_failure_and_not_an_empty_result(self):
        async def coroutine(item, results):
            total(item, results)

        def generator(item, results):
            yield total(item, results)

        for work in (coroutine, generator):
            processor = self.serve(work)
            processor.greet()
            with self.assertLogs("muster", "ERROR"):
                processor.give("1/1", ("Ada", "1"))
                why = processor.answer().retry.why
            self.assertRegex(why, f"^TypeError: a {work.__name__} was returned")

    def test_a_reason_and_a_time_are_cut_to_what_processors_take(self):
        day = datetime.timedelta(days=1)
        dead, bug, past, far = self.answers_to([
            muster.Dead("x" * 5_000_000), RuntimeError("x" * 5_000_000),
            muster.Retry("late", -day), muster.Defer("later", 400 * day)])
        self.assertEqual(dead.dead.why, "x" * 1000)
        self.assertRegex(bug.retry.why, "^RuntimeError: x{900}")
        self.assertTrue(past.retry.HasField("after"))
        self.assertEqual(past.retry.after.ToTimedelta(), datetime.timedelta())
        self.assertEqual(far.defer.after.ToTimedelta(), 7 * day)

    def test_half_a_character_in_a_reason_leaves_no_item_without_an_answer(self):
        outcomes = {"1/1": muster.Retry("\udcff?"), "1/2": muster.Defer("\udcff?"), "1/3": muster.Dead("\udcff?"),
                    "1/4": FileNotFoundError("\udcff?")}

        def fail(item, results):
            if item.name in outcomes:
                raise outcomes[item.name]
            results.reject(2, "\udcff?")

        processor = self.serve(fail)
        processor.greet()
        with self.assertLogs("muster", "ERROR"):
            for name in outcomes:
                processor.give(name)
            retry, defer, dead, bug = [processor.answer() for _ in outcomes]
        processor.give("1/5", ("Ada", "1"))
        told = [retry.retry.why, defer.defer.why, dead.dead.why, bug.retry.why,
                processor.answer().ok.rejected[0].reason]
        self.assertEqual(told, ["??", "??", "??", "FileNotFoundError: ??", "??"])

    def test_results_that_no_message_has_room_for_are_given_up_with_the_reason(self):
        def grow(item, results):
            for customer in range(5000):
                results.add(spent(1, f"{customer:01000}"))

        processor = self.serve(grow)
        processor.greet()
        processor.give("1/1")
        self.assertRegex(processor.answer().dead.why, "more than a message may have")

    def test_items_are_worked_on_side_by_side_and_answered_in_any_order(self):
        let_first_end = threading.Event()

        def wait(item, results):
            if item.name == "1/1":
                let_first_end.wait(SECONDS)

        processor = self.serve(wait, concurrency=2)
        processor.greet()
        processor.give("1/1")
        processor.give("1/2")
        self.assertEqual(processor.answer().item, "1/2")
        let_first_end.set()
        self.assertEqual(processor.answer().item, "1/1")

    def test_an_abandoned_item_is_told_so(self):
        begun = threading.Event()
        told = threading.Event()

        def work(item, results):
            begun.set()
            while not item.abandoned:
                pass
            told.set()

        processor = self.serve(work)
        processor.greet()
        processor.give("1/1")
        self.assertTrue(begun.wait(SECONDS))
        processor.abandon("1/1")
        self.assertTrue(told.wait(SECONDS))
        processor.leave()
        self.assertEqual(list(processor.call), [])
        self.assertEqual(processor.call.code(), grpc.StatusCode.OK)

    def test_a_server_that_stops_answers_what_it_has_and_ends_with_ok(self):
        begun, may_end = threading.Event(), threading.Event()

        def work(item, results):
            begun.set()
            may_end.wait(SECONDS)

        processor = self.serve(work)
        processor.greet()
        processor.give("1/1")
        self.assertTrue(begun.wait(SECONDS))
        stopping = threading.Thread(target=self.server.stop)
        stopping.start()
        may_end.set()
        self.assertEqual(processor.answer().item, "1/1")
        self.assertEqual(list(processor.call), [])
        self.assertEqual(processor.call.code(), grpc.StatusCode.OK)
        stopping.join(SECONDS)
        self.assertFalse(stopping.is_alive())

    def test_a_job_that_it_cannot_work_on_is_refused_with_the_reason(self):
        for greeting, why in (({"columns": ["customer"]}, "needs the column amount"),
                              ({"protocol_version": 2}, "speaks version 1, not 2")):
            processor = self.serve()
            with self.assertRaisesRegex(grpc.RpcError, why):
                processor.greet(**greeting)
            self.assertEqual(processor.call.code(), grpc.StatusCode.FAILED_PRECONDITION)

    def test_an_address_that_is_taken_is_an_error(self):
        self.serve()
        with self.assertRaises(OSError):
            muster.serve_handler(total, version="1", listen=self.server.address)


class CertificateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.certificate = pathlib.Path(folder.name) / "me.pem"
        self.key = pathlib.Path(folder.name) / "me.key"
        self.renew()

    def renew(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-subj", "/CN=me", "-addext", "subjectAltName=IP:127.0.0.1", "-out",
             self.certificate, "-keyout", self.key], check=True, capture_output=True)

    def test_one_that_was_renewed_is_shown_to_the_next_that_connects(self):
        server = muster.serve_handler(lambda item, results: None, version="1",
                                      listen="127.0.0.1:0", certificate=self.certificate,
                                      key=self.key)
        self.addCleanup(server.stop)
        host, port = server.address.rsplit(":", 1)

        def shown():
            return ssl.get_server_certificate((host, int(port)), timeout=SECONDS)

        first = self.certificate.read_text()
        self.assertEqual(shown(), first)
        self.renew()
        second = self.certificate.read_text()
        self.assertEqual(shown(), second)
        self.key.write_text("half of a file")
        self.assertEqual(shown(), second)
        self.key.unlink()
        self.assertEqual(shown(), second)
        self.renew()
        self.assertEqual(shown(), self.certificate.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
