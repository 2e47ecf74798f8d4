# SPDX-License-Identifier: Apache-2.0
"""The client against an initiator that breaks, waits and refuses on command."""

import concurrent.futures
import datetime
import decimal
import io
import os
import pathlib
import queue
import subprocess
import tempfile
import threading
import unittest

import grpc

import muster
from fake_initiator import FakeInitiator
from google.protobuf import duration_pb2
from muster.rpc_details import error_details_pb2
from muster.v1 import (call_service_pb2, call_service_pb2_grpc, stream_service_pb2,
                       stream_service_pb2_grpc)

MIB = 1 << 20


def break_off(there, context):
    context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")


def break_at(size):
    return lambda there, context: break_off(there, context) if there >= size else None


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.initiator = FakeInitiator()
        self.addCleanup(self.initiator.close)
        self.client = muster.Client(self.initiator.address, patience=20)
        self.addCleanup(self.client.close)


class ScheduleTest(ClientTest):
    def test_a_time_zone_beside_a_time_is_refused_and_not_dropped(self):
        # It was submitted at 3 o'clock of the machine that asked for it.
        when = {"at": datetime.datetime(2030, 1, 1, 3), "time_zone": "Europe/Berlin"}
        with self.assertRaisesRegex(ValueError, "time_zone is for cron"):
            self.client.create_schedule("soon", "billing", b"amount\n1\n", **when)
        with self.assertRaisesRegex(ValueError, "time_zone is for cron"):
            self.client.update_schedule("soon", "billing", **when)


class FakeCalls(call_service_pb2_grpc.CallServiceServicer):
    """Answers the first `failures` calls with Unavailable."""

    def __init__(self, failures):
        self.failures = failures
        self.requests = []
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        call_service_pb2_grpc.add_CallServiceServicer_to_server(self, self.server)
        self.address = "127.0.0.1:%d" % self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def Call(self, request, context):
        self.requests.append(request)
        if len(self.requests) <= self.failures:
            break_off(0, context)
        response = call_service_pb2.CallResponse(batch=7, line=2)
        response.accepted.SetInParent()
        return response


class RenewedCertificateTest(unittest.TestCase):
    """Both sides show and trust the certificate that the same files hold."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.certificate = pathlib.Path(folder.name) / "me.pem"
        self.key = pathlib.Path(folder.name) / "me.key"
        self.renew()
        self.seen = queue.SimpleQueue()  # what calls have shown, when they begin
        self.held = threading.Event()
        calls = grpc.method_handlers_generic_handler(
            "muster.v1.CallService", {"Call": grpc.unary_unary_rpc_method_handler(
                self.answer, call_service_pb2.CallRequest.FromString,
                call_service_pb2.CallResponse.SerializeToString)})
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), [calls])
        port = server.add_secure_port("127.0.0.1:0", grpc.dynamic_ssl_server_credentials(
            self.configuration(), self.configuration, require_client_authentication=True))
        server.start()
        self.addCleanup(lambda: server.stop(0).wait())
        self.client = muster.Client(f"127.0.0.1:{port}", ca=self.certificate,
                                    certificate=self.certificate, key=self.key)
        self.addCleanup(self.client.close)

    def renew(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-subj", "/CN=me", "-addext", "subjectAltName=IP:127.0.0.1", "-out",
             self.certificate, "-keyout", self.key], check=True, capture_output=True)

    def configuration(self):
        return grpc.ssl_server_certificate_configuration(
            [(self.key.read_bytes(), self.certificate.read_bytes())], self.certificate.read_bytes())

    def answer(self, request, context):
        self.seen.put(context.auth_context()["x509_pem_cert"][0].decode())
        if request.record == b"held":
            self.held.wait(60)
        response = call_service_pb2.CallResponse(batch=7, line=2)
        response.accepted.SetInParent()
        return response

    def shown(self):
        self.client.call("job", "a,1")
        return self.seen.get(timeout=60)

    def test_it_is_shown_and_trusted_by_the_next_call(self):
        self.assertEqual(self.shown(), self.certificate.read_text())
        self.renew()
        self.assertEqual(self.shown(), self.certificate.read_text())

    def test_a_call_in_work_is_answered_on_the_connection_that_it_began_on(self):
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            held = pool.submit(self.client.call, "job", "held")
            self.assertEqual(self.seen.get(timeout=60), self.certificate.read_text())
            self.renew()
            self.assertEqual(self.shown(), self.certificate.read_text())
            self.held.set()
            self.assertEqual(held.result(timeout=60), muster.Answer(7, 2, ()))

    def test_files_that_do_not_fit_each_other_change_nothing(self):
        before = self.shown()
        first = self.key.read_text()
        self.renew()
        second = self.key.read_text()
        self.key.write_text(first)  # only the certificate is there yet
        self.assertEqual(self.shown(), before)
        self.key.unlink()
        self.assertEqual(self.shown(), before)
        self.key.write_text(second)
        self.assertEqual(self.shown(), self.certificate.read_text())


class CallTest(unittest.TestCase):
    def start(self, failures):
        calls = FakeCalls(failures)
        self.addCleanup(lambda: calls.server.stop(0).wait())
        client = muster.Client(calls.address)
        self.addCleanup(client.close)
        return calls, client

    def test_a_call_that_breaks_is_not_tried_again(self):
        calls, client = self.start(failures=1)
        with self.assertRaises(muster.Unavailable):
            client.call("job", "a,1")
        self.assertEqual(len(calls.requests), 1)

    def test_a_call_with_a_request_id_is_tried_again_with_the_same_one(self):
        calls, client = self.start(failures=2)
        self.assertEqual(client.call("job", "a,1", retry=True), muster.Answer(7, 2, ()))
        [request_id] = {request.request_id for request in calls.requests}
        self.assertTrue(request_id)
        self.assertEqual(len(calls.requests), 3)

    def test_a_mapping_is_sent_as_exact_texts(self):
        calls, client = self.start(failures=0)
        client.call("job", {"a": "x", "b": 7, "c": decimal.Decimal("1E+2"), "d": True, "e": None,
                            "f": ["é", 1]})
        self.assertEqual(dict(calls.requests[0].fields),
                         {"a": "x", "b": "7", "c": "100", "d": "true", "f": '["é",1]'})
        self.assertEqual(calls.requests[0].request_id, b"")
        with self.assertRaises(TypeError):
            client.call("job", {"a": 0.5})


class FakeStreams(stream_service_pb2_grpc.StreamServiceServicer):
    """Answers each call of a processor as the next of `calls` does."""

    def __init__(self, *calls):
        self.calls = list(calls)
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        stream_service_pb2_grpc.add_StreamServiceServicer_to_server(self, self.server)
        self.address = "127.0.0.1:%d" % self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def ProcessEvents(self, requests, context):
        next(requests)  # the start
        yield stream_service_pb2.ProcessEventsResponse(member="me")
        yield from self.calls.pop(0)(requests, context)


def end(requests, context):
    yield stream_service_pb2.ProcessEventsResponse(ended=stream_service_pb2.ProcessingEnded())


class ProcessorTest(unittest.TestCase):
    def start(self, *calls):
        streams = FakeStreams(*calls)
        self.addCleanup(lambda: streams.server.stop(0).wait())
        processor = muster.EventProcessor(streams.address, "homes", "store")
        self.addCleanup(processor.close)
        return processor

    def test_a_server_that_cancels_its_calls_when_it_stops_is_called_again(self):
        def stop(requests, context):
            context.abort(grpc.StatusCode.CANCELLED, "")
            yield
        told = []
        self.start(stop, end).run(lambda partition, event: None, told.append)
        self.assertEqual([(type(lost.error), lost.operation) for lost in told],
                         [(muster.Cancelled, "open")])

    def test_a_server_hears_of_each_event_whatever_is_raised(self):
        heard = []

        def hand_out(requests, context):
            yield stream_service_pb2.ProcessEventsResponse(opened=stream_service_pb2.PartitionOpened())
            for offset in range(3):
                yield stream_service_pb2.ProcessEventsResponse(event=stream_service_pb2.PartitionEvent(
                    event=stream_service_pb2.StreamEvent(offset=offset)))
                heard.append(next(requests).handled.error)
            yield stream_service_pb2.ProcessEventsResponse(closing=stream_service_pb2.PartitionClosing())
            heard.append(next(requests).handled.error)
            yield from end(requests, context)

        def handle(partition, event):
            raise (ValueError("no"), SystemExit(1), KeyError("no"))[event.offset]

        def on_error(told):
            raise RuntimeError("nor can I tell of it")

        def close(partition, reason):
            raise ValueError("no")
        self.start(hand_out).run(handle, on_error, on_partition_closing=close)
        self.assertEqual(heard, ["failed", "failed", "failed", ""])

    def test_a_server_hears_of_an_event_whose_error_has_half_a_character(self):
        heard = []

        def hand_out(requests, context):
            yield stream_service_pb2.ProcessEventsResponse(opened=stream_service_pb2.PartitionOpened())
            yield stream_service_pb2.ProcessEventsResponse(event=stream_service_pb2.PartitionEvent())
            heard.append(next(requests).handled.error)
            yield from end(requests, context)

        def handle(partition, event):
            raise FileNotFoundError("\udcff")
        self.start(hand_out).run(handle)
        self.assertEqual(heard, ["FileNotFoundError: ?"])


    def test_an_event_is_not_handled_by_a_function_that_was_not_run(self):
        heard = []

        def hand_out(requests, context):
            yield stream_service_pb2.ProcessEventsResponse(opened=stream_service_pb2.PartitionOpened())
            yield stream_service_pb2.ProcessEventsResponse(event=stream_service_pb2.PartitionEvent())
            heard.append(next(requests).handled.error)
            yield from end(requests, context)

        async def handle(partition, event):
            pass
        self.start(hand_out).run(handle)
        self.assertRegex(heard[0], "^TypeError: a coroutine was returned")


class AddressTest(unittest.TestCase):
    def test_what_is_not_host_and_port_is_refused_with_the_form_that_it_must_have(self):
        for address in ("localhost", "localhost:", ":7700", "localhost:http", "localhost:0", "localhost:65536",
                        "::1:7700", "[::1]", "http://localhost:7700", "me@localhost:7700", "local host:7700",
                        "localhost:7700\n"):
            for make in (lambda: muster.Client(address), lambda: muster.Client(controller=address),
                         lambda: muster.EventProducer(address, "homes"),
                         lambda: muster.EventProcessor(address, "homes", "store")):
                with self.subTest(address=address), self.assertRaisesRegex(ValueError, "must be HOST:PORT"):
                    make()

    def test_names_and_addresses_of_both_kinds_are_taken(self):
        for address in ("localhost:7700", "127.0.0.1:1", "[::1]:65535", "mesh.example.org:7700"):
            muster.Client(address, controller=address).close()


class JsonTest(unittest.TestCase):
    def test_decimals_are_written_as_they_are_wherever_they_stand(self):
        price = decimal.Decimal("0.10")
        self.assertEqual(muster.json_lines([{"price": price, "items": [{"price": price}], "who": "zoë"}]),
                         '{"price":0.10,"items":[{"price":0.10}],"who":"zoë"}\n'.encode())
        with self.assertRaisesRegex(TypeError, "NaN is no number of JSON"):
            muster.json_lines([{"price": decimal.Decimal("NaN")}])
        for value in ("nan", "inf"):
            with self.assertRaisesRegex(TypeError, f"{value} is no number of JSON"):
                muster.json_lines([{"price": [float(value)]}])

    def test_a_called_record_has_no_float_at_any_depth(self):
        with muster.Client("127.0.0.1:1") as client:
            for value in (1.5, [1.5], {"price": [1.5]}):
                with self.assertRaisesRegex(TypeError, "^items: a float is not exact"):
                    client.call("job", {"items": value})


class UploadTest(ClientTest):
    # No two MiB are alike.
    CONTENT = b"".join(b"%07d\n" % line for line in range(5 * MIB // 8))

    def pieces(self, bytes_each):
        for begin in range(0, len(self.CONTENT), bytes_each):
            yield self.CONTENT[begin:begin + bytes_each]

    def test_what_can_be_read_only_once_goes_on_where_it_was_durable(self):
        self.initiator.breaks = [break_at(2 * MIB), break_off]
        batch = self.client.submit("job", self.pieces(100_000), request_id="once")
        self.assertEqual(batch.number, 7)
        self.assertEqual(self.initiator.content, self.CONTENT)
        self.assertEqual([header.request_id for header in self.initiator.headers], [b"once"] * 3)

    def test_an_upload_that_another_process_has_begun_is_not_sent_again(self):
        self.initiator.content = self.CONTENT[:3 * MIB + 12345]
        self.client.submit("job", self.pieces(MIB), request_id="march")
        self.assertEqual(self.initiator.content, self.CONTENT)
        self.assertEqual(self.initiator.received, 2)

    def test_a_submit_says_to_which_trace_its_batch_belongs(self):
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        self.client.submit("job", b"1\n", traceparent=trace, tracestate="a=b")
        self.initiator.content = b""
        self.client.submit("job", b"1\n")
        self.assertEqual([(header.traceparent, header.tracestate)
                          for header in self.initiator.headers], [(trace, "a=b"), ("", "")])

    def test_progress_says_what_is_durable_and_how_much_there_is(self):
        seen = []
        self.client.submit("job", self.CONTENT, progress=seen.append)
        self.assertEqual(seen, [muster.SubmitProgress(7, done * MIB, 5 * MIB) for done in range(6)])

    def test_the_same_content_has_the_same_request_id_and_once_read_content_a_new_one(self):
        self.client.submit("job", self.CONTENT)
        self.client.submit("job", io.BytesIO(self.CONTENT))
        self.initiator.content = b""
        self.client.submit("job", iter([b"a"]))
        self.initiator.content = b""
        self.client.submit("job", iter([b"a"]))
        first, second, *others = [header.request_id for header in self.initiator.headers]
        self.assertEqual(first, second)
        self.assertRegex(first, rb"^job:[0-9a-f]{32}$")
        self.assertEqual(len({first, *others}), 3)

    def test_a_submit_that_is_refused_for_now_says_when_to_come_again(self):
        self.initiator.refuses = (
            grpc.StatusCode.RESOURCE_EXHAUSTED, "too much waits",
            (("RetryInfo", error_details_pb2.RetryInfo(
                retry_delay=duration_pb2.Duration(seconds=300))),
             ("ErrorInfo", error_details_pb2.ErrorInfo(
                 reason="DRAIN_TOO_LONG", domain="muster", metadata={
                     "job": "job", "estimate_seconds": "7500", "limit_seconds": "7200"}))))
        with self.assertRaisesRegex(muster.ResourceExhausted, "too much waits") as refused:
            self.client.submit("job", b"a")
        self.assertEqual(refused.exception.retry_after, datetime.timedelta(minutes=5))
        self.assertEqual(refused.exception.reason, "DRAIN_TOO_LONG")
        self.assertEqual(refused.exception.facts["estimate_seconds"], "7500")
        self.assertEqual(len(self.initiator.headers), 1, "it is for the caller to try again")
        self.initiator.refuses = None
        self.assertEqual(self.client.submit("job", b"a").number, self.initiator.batch)

    def test_an_empty_content_is_sealed_at_once(self):
        self.client.submit("job", b"")
        self.assertEqual((self.initiator.content, self.initiator.received), (b"", 0))

    def test_content_of_one_chunk_does_not_wait_until_its_header_is_accepted(self):
        self.initiator.accepts_late = True
        self.client.submit("job", self.CONTENT[:MIB])
        self.assertEqual(self.initiator.content, self.CONTENT[:MIB])

    def test_content_of_one_chunk_is_not_sent_twice_where_it_is_known(self):
        self.initiator.content = self.CONTENT[:MIB]
        self.assertEqual(self.client.submit("job", self.CONTENT[:MIB]).number, 7)
        self.assertEqual(self.initiator.content, self.CONTENT[:MIB])
        self.assertEqual(len(self.initiator.headers), 2)

    def test_it_does_not_run_more_than_8_mib_ahead(self):
        self.initiator.acknowledges = False
        passed_limit = []

        def refuse_when_it_should_have_stopped(there, context):
            if there == 8 * MIB:
                passed_limit.append(taken[0] > 8 and self.initiator.await_chunks(9, seconds=0.5))
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "enough")

        taken = [0]

        def endless():
            while True:
                taken[0] += 1
                yield b"x" * MIB

        self.initiator.breaks = [refuse_when_it_should_have_stopped]
        with self.assertRaises(muster.InvalidArgument):
            self.client.submit("job", endless())
        self.assertEqual(passed_limit, [False])
        self.assertEqual(taken, [8])

    def test_content_that_cannot_be_read_is_the_callers_error(self):
        def failing():
            yield b"x" * MIB
            raise OSError("the tape broke")

        with self.assertRaisesRegex(OSError, "the tape broke"):
            self.client.submit("job", failing())
        with self.assertRaises(TypeError):
            self.client.submit("job", ["text"])
        with self.assertRaises(TypeError):
            self.client.submit("job", io.StringIO("text"))
        with self.assertRaises(FileNotFoundError):
            self.client.submit("job", "/no/such/file")

    def test_what_a_file_has_not_got_yet_is_not_taken_for_its_end(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        os.set_blocking(reading, False)
        os.write(writing, b"1\n")  # and more may come
        with open(reading, "rb", buffering=0) as pipe:
            with self.assertRaises(BlockingIOError):
                self.client.submit("job", pipe)
        self.assertEqual(self.initiator.content, b"")

    def test_what_progress_raises_ends_the_upload(self):
        def stop(progress):
            raise InterruptedError

        with self.assertRaises(InterruptedError):
            self.client.submit("job", self.CONTENT, progress=stop)

    def test_a_batch_that_was_cancelled_meanwhile_is_not_begun_anew(self):
        def cancel_and_break(there, context):
            self.initiator.batch = 8
            break_off(there, context)

        self.initiator.breaks = [cancel_and_break]
        with self.assertRaisesRegex(muster.Cancelled, "batch 7 was cancelled") as caught:
            self.client.submit("job", self.CONTENT)
        self.assertEqual(caught.exception.reason, "BATCH_CANCELLED")

    def test_trouble_that_lasts_longer_than_the_patience_comes_out(self):
        hasty = muster.Client(self.initiator.address, patience=0)
        self.addCleanup(hasty.close)
        self.initiator.breaks = [break_off] * 100
        # With each piece there is news, so the end is certain only where no piece comes across.
        self.initiator.close()
        with self.assertRaises(muster.Unavailable):
            hasty.submit("job", self.CONTENT)

    def test_an_initiator_that_accepts_and_gets_no_further_is_no_news(self):
        self.initiator.unsealed = grpc.StatusCode.UNAVAILABLE
        with muster.Client(self.initiator.address, patience=0) as hasty:
            with self.assertRaisesRegex(muster.Unavailable, "the disk fails"):
                hasty.submit("job", b"1\n")


class WatchTest(ClientTest):
    def test_a_watch_goes_on_after_the_last_revision_that_it_saw(self):
        self.initiator.watches = [[3, 4], [], [9]]
        self.assertEqual([batch.revision for batch in self.client.watch(7)], [3, 4, 9])
        self.assertEqual(self.initiator.watched_after, [0, 4, 4])

    def test_what_is_known_is_not_told_again(self):
        self.initiator.watches = [[5]]
        [batch] = self.client.watch(7, after_revision=4)
        self.assertEqual(self.initiator.watched_after, [4])
        self.assertEqual((batch.number, batch.state), (7, muster.BatchState.COMPLETE))

    def test_a_wait_ends_with_its_time(self):
        self.initiator.watches = [[1]] + [[]] * 1000
        with self.assertRaises(muster.DeadlineExceeded) as caught:
            self.client.wait(7, timeout=0.3)
        self.assertIsInstance(caught.exception, TimeoutError)


class ErrorTest(ClientTest):
    def failure(self, code, *details):
        self.initiator.fails_with = code, "because", details
        with self.assertRaises(muster.MusterError) as caught:
            self.client.get(7)
        self.assertEqual((caught.exception.code, caught.exception.message), (code, "because"))
        return caught.exception

    def test_an_error_carries_the_fields_that_are_refused(self):
        bad = error_details_pb2.BadRequest()
        bad.field_violations.add(field="batch", description="must not be 0")
        error = self.failure(grpc.StatusCode.INVALID_ARGUMENT, ("BadRequest", bad))
        self.assertIsInstance(error, muster.InvalidArgument)
        self.assertEqual(list(error.violations), [muster.FieldViolation("batch", "must not be 0")])

    def test_an_error_carries_when_to_try_again_and_its_reason(self):
        error = self.failure(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            ("RetryInfo", error_details_pb2.RetryInfo(
                retry_delay=duration_pb2.Duration(seconds=2, nanos=500_000_000))),
            ("ErrorInfo", error_details_pb2.ErrorInfo(
                reason="TOO_MANY", domain="muster", metadata={"limit": "500"})))
        self.assertIsInstance(error, muster.ResourceExhausted)
        self.assertEqual(error.retry_after, datetime.timedelta(seconds=2.5))
        self.assertEqual((error.reason, dict(error.facts)), ("TOO_MANY", {"limit": "500"}))

    def test_each_code_with_a_meaning_has_a_class(self):
        for code, kind in ((grpc.StatusCode.NOT_FOUND, muster.NotFound),
                           (grpc.StatusCode.FAILED_PRECONDITION, muster.FailedPrecondition),
                           (grpc.StatusCode.ABORTED, muster.Aborted),
                           (grpc.StatusCode.OUT_OF_RANGE, muster.OutOfRange),
                           (grpc.StatusCode.PERMISSION_DENIED, muster.PermissionDenied),
                           (grpc.StatusCode.DATA_LOSS, muster.DataLoss),
                           (grpc.StatusCode.INTERNAL, muster.MusterError)):
            self.assertIs(type(self.failure(code)), kind)


if __name__ == "__main__":
    unittest.main(verbosity=2)
