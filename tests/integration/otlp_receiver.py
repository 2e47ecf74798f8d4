# SPDX-License-Identifier: Apache-2.0
"""An OpenTelemetry collector for tests: it keeps what it is sent by OTLP over gRPC, or hangs."""

import collections
import concurrent.futures
import threading
import time

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.proto.trace.v1 import trace_pb2

from traced_case import Span

Record = collections.namedtuple("Record", "body severity attributes trace service")


def value_of(value):
    return getattr(value, value.WhichOneof("value"))


def attributes_of(pairs):
    return {pair.key: value_of(pair.value) for pair in pairs}


class Receiver:
    def __init__(self):
        self.heard = threading.Condition()
        self.spans = []
        self.records = []
        self.points = {}  # the latest value, by (service instance, metric, labels)
        self.resources = {}  # attributes, by service instance
        self.hangs = False
        self.calls = 0
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(16))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self.Traces(self), self.server)
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(self.Metrics(self), self.server)
        logs_service_pb2_grpc.add_LogsServiceServicer_to_server(self.Logs(self), self.server)
        self.endpoint = f"http://127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def stop(self):
        self.set_hanging(False)
        self.server.stop(None)

    def set_hanging(self, hangs):
        with self.heard:
            self.hangs = hangs
            self.heard.notify_all()

    def take(self, context, resource):
        """Called with each call; waits while the collector hangs."""
        with self.heard:
            self.calls += 1
            self.heard.wait_for(lambda: not self.hangs or not context.is_active())
        attributes = attributes_of(resource.attributes)
        self.resources[attributes["service.instance.id"]] = attributes
        return attributes

    def wait_for(self, reached, seconds):
        """Waits until `reached` is true of this receiver."""
        end = time.monotonic() + seconds
        with self.heard:
            return self.heard.wait_for(lambda: reached(self), end - time.monotonic())

    class Traces(trace_service_pb2_grpc.TraceServiceServicer):
        def __init__(self, receiver):
            self.receiver = receiver

        def Export(self, request, context):
            for group in request.resource_spans:
                service = self.receiver.take(context, group.resource)["service.name"]
                with self.receiver.heard:
                    self.receiver.spans += [
                        Span(span.name, trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
                             span.span_id.hex(), span.parent_span_id.hex(), span.trace_id.hex(),
                             [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
                             attributes_of(span.attributes),
                             span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
                             span.start_time_unix_nano, span.end_time_unix_nano, service)
                        for scope in group.scope_spans for span in scope.spans]
                    self.receiver.heard.notify_all()
            return trace_service_pb2.ExportTraceServiceResponse()

    class Metrics(metrics_service_pb2_grpc.MetricsServiceServicer):
        def __init__(self, receiver):
            self.receiver = receiver

        def Export(self, request, context):
            for group in request.resource_metrics:
                instance = self.receiver.take(context, group.resource)["service.instance.id"]
                with self.receiver.heard:
                    for metric in (m for scope in group.scope_metrics for m in scope.metrics):
                        kind = metric.WhichOneof("data")
                        for point in getattr(metric, kind).data_points:
                            labels = tuple(sorted(attributes_of(point.attributes).items()))
                            value = point.count if kind == "histogram" else point.as_double
                            self.receiver.points[instance, metric.name, labels] = value
                    self.receiver.heard.notify_all()
            return metrics_service_pb2.ExportMetricsServiceResponse()

    class Logs(logs_service_pb2_grpc.LogsServiceServicer):
        def __init__(self, receiver):
            self.receiver = receiver

        def Export(self, request, context):
            for group in request.resource_logs:
                service = self.receiver.take(context, group.resource)["service.name"]
                with self.receiver.heard:
                    self.receiver.records += [
                        Record(value_of(record.body), record.severity_text, attributes_of(record.attributes),
                               record.trace_id.hex(), service)
                        for scope in group.scope_logs for record in scope.log_records]
                    self.receiver.heard.notify_all()
            return logs_service_pb2.ExportLogsServiceResponse()

    def total(self, name, **labels):
        return sum(value for (_, metric, of), value in self.points.items()
                   if metric == name and labels.items() <= dict(of).items())
