# SPDX-License-Identifier: Apache-2.0
"""What a mesh of real programs sends to an OpenTelemetry collector: one trace for a batch, in which nothing is
missing, also after a kill; its metrics; its logs. A collector that hangs keeps no work waiting."""

import http.server
import os
import sys
import threading
import time
import urllib.request

try:
    from otlp_receiver import Receiver
except ImportError as missing:
    print(f"skipped: {missing} (Debian's python3-opentelemetry-proto)")
    sys.exit(77)

import harness
from harness import MusterTest
from mesh import READY_SECONDS, Mesh, free_address
from mesh_case import MeshTest
from traced_case import CALLER, TRACEPARENT, CollectedTest, OneTraceTest


class TracedMesh(Mesh):
    """A mesh whose controller shows metrics, too."""

    def __init__(self, metrics, *arguments):
        super().__init__(*arguments)
        self.metrics = metrics

    def start_role(self, role, address=None, *more, data=None):
        if role == "controller":
            more += "--metrics", self.metrics
        return super().start_role(role, address, *more, data=data)


class HttpOnly(http.server.BaseHTTPRequestHandler):
    """Answers the first bytes of gRPC as the HTTP receiver of a collector does."""

    def handle(self):
        self.connection.recv(1024)
        self.connection.sendall(b"HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\n\r\n")


class RunTest(CollectedTest, MusterTest):
    def make_receiver(self):
        return Receiver()

    def test_a_run_without_a_mesh_is_one_trace_too(self):
        self.open_receiver()
        done = self.muster("run", str(self.job), "--input", str(self.lines("a", "b", "c")))
        self.assertEqual(done.returncode, 0, done.stderr)
        [batch] = self.await_spans("batch words", 1)
        self.assertEqual((batch.parent, batch.service), (CALLER[1], "muster-run"))
        creates = {span.id for span in self.await_spans("create words-in", 2)}
        processed = {span.id: span.parent for span in self.await_spans("process words-in", 2)}
        self.assertEqual(set(processed.values()), creates)
        committed = {link for span in self.await_spans("commit report", 1) for _, link in span.links}
        self.assertEqual(committed, set(processed))


    def test_a_collector_that_hangs_delays_no_end_whatever_time_a_call_may_take(self):
        self.open_receiver()
        self.receiver.set_hanging(True)
        os.environ["OTEL_EXPORTER_OTLP_TIMEOUT"] = "3600000"
        done = self.muster("run", str(self.job), "--input", str(self.lines("a", "b", "c")))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_collector_that_speaks_http_only_is_named_with_what_to_set(self):
        self.open_receiver()
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HttpOnly)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever).start()
        self.addCleanup(server.shutdown)
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
        done = self.muster("run", str(self.job), "--input", str(self.lines("a", "b")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"endpoint=http://127.0.0.1:{server.server_port}", done.stderr)
        self.assertIn("at the endpoint is HTTP and no gRPC", done.stderr)

    def test_a_variable_that_is_wrong_is_refused_by_name(self):
        self.open_receiver()
        os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf"
        self.addCleanup(os.environ.pop, "OTEL_EXPORTER_OTLP_PROTOCOL")
        done = self.muster("run", str(self.job), "--input", str(self.lines("a")))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("OTEL_EXPORTER_OTLP_PROTOCOL", done.stderr)


class OtlpTest(OneTraceTest, MeshTest):
    def make_receiver(self):
        return Receiver()

    def make_mesh(self):
        return TracedMesh(self.metrics, self.folder, self.nats_server, self.nats_servers)

    def setUp(self):
        self.metrics = free_address()
        super().setUp()

    def test_a_batch_that_its_caller_does_not_sample_leaves_no_span(self):
        unsampled = TRACEPARENT.removesuffix("01") + "00"
        self.end(self.begin("a", "b", traceparent=unsampled))
        self.await_total(1, "muster_items_total", outcome="aggregated")
        self.assertEqual(self.receiver.spans, [])
        self.assertIn(unsampled, self.told.read_text())

    def await_total(self, expected, name, **labels):
        self.receiver.wait_for(lambda receiver: receiver.total(name, **labels) == expected, READY_SECONDS)
        self.assertEqual(self.receiver.total(name, **labels), expected, name)

    def test_metrics_and_logs_are_those_of_the_services(self):
        self.end(self.begin("a", "b", "dead", "d"))
        self.await_total(1, "muster_items_total", queue="words-in", outcome="aggregated")
        self.await_total(1, "muster_items_total", queue="words-in", outcome="dead_lettered")
        self.await_total(2, "muster_item_latency_seconds", queue="words-in")
        self.await_total(4, "muster_build_info")
        # By the names and attributes of OpenTelemetry's conventions; no error, no error.type.
        about = {"messaging.destination.name": "words-in", "messaging.system": "muster"}
        self.await_total(2, "messaging.client.sent.messages", **about, **{"messaging.operation.name": "send"})
        self.await_total(2, "messaging.client.consumed.messages", **about)
        self.await_total(1, "messaging.process.duration", **about, **{"error.type": "dead"})
        logged = self.receiver.wait_for(
            lambda receiver: {record.service for record in receiver.records if record.body == "ready"} ==
            {"muster-initiator", "muster-controller", "muster-processor"}, READY_SECONDS)
        self.assertTrue(logged, self.receiver.records)

    def test_the_latency_of_items_has_exemplars_in_their_trace(self):
        page = urllib.request.Request(f"http://{self.metrics}/metrics",
                                      headers={"Accept": "application/openmetrics-text;version=1.0.0"})
        self.end(self.begin("a", "b"))
        [processed] = self.await_spans("process words-in", 1)
        end = time.monotonic() + READY_SECONDS
        expected = f'# {{trace_id="{CALLER[0]}",span_id="{processed.id}"}}'
        while True:
            with urllib.request.urlopen(page, timeout=READY_SECONDS) as answer:
                text = answer.read().decode()
            if expected in text:
                break
            self.assertLess(time.monotonic(), end, text)

    def test_a_collector_that_hangs_keeps_no_work_waiting(self):
        self.receiver.set_hanging(True)
        result = self.end(self.begin("a", "b", "c", "d"))
        self.assertEqual(result["aggregated"], 4)
        for program in self.mesh.processors + [self.mesh.controller, self.mesh.initiator]:
            program.await_line("the telemetry collector does not take what is sent")
            self.assertEqual(program.stop(), 0)
        self.assertLess(0, self.receiver.calls)


if __name__ == "__main__":
    harness.main()
