# SPDX-License-Identifier: Apache-2.0
"""A batch's trace as Jaeger tells it, which has it from an OpenTelemetry Collector, which has it from a mesh of
real programs: every span with its kind, links and attributes, also after a kill.

Needs a Collector and a Jaeger, whose paths are in MUSTER_COLLECTOR and MUSTER_JAEGER: `scripts/prove tracing`
builds them.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request

import harness
from mesh import Program, free_address
from mesh_case import MeshTest
from traced_case import CALLER, OneTraceTest, Span

LOOK_SECONDS = 0.2

COLLECTOR = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "{endpoint}"}}}}}}}}
processors: {{batch: {{timeout: 50ms}}}}
exporters: {{otlp: {{endpoint: "{jaeger}", tls: {{insecure: true}}}}}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{traces: {{receivers: [otlp], processors: [batch], exporters: [otlp]}}}}
"""


class Jaeger:
    """A Collector that hands what it is sent to a Jaeger, which is asked for the spans."""

    def __init__(self, folder):
        self.query = free_address()
        otlp, collector = free_address(), free_address()
        self.jaeger = Program([os.environ["MUSTER_JAEGER"], "--collector.otlp.grpc.host-port", otlp,
                               "--query.http-server.host-port", self.query,
                               *(f"--{port}.host-port={free_address()}" for port in (
                                   "admin.http", "collector.grpc-server", "collector.http-server",
                                   "collector.otlp.http", "query.grpc-server"))],
                              "Starting GRPC server")
        config = folder / "collector.yaml"
        config.write_text(COLLECTOR.format(endpoint=collector, jaeger=otlp), encoding="utf-8")
        self.collector = Program([os.environ["MUSTER_COLLECTOR"], "--config", config], "Everything is ready")
        self.endpoint = f"http://{collector}"
        self.jaeger.await_ready()
        self.collector.await_ready()

    def stop(self):
        self.collector.stop()
        self.jaeger.stop()

    def trace(self):
        """The caller's trace in Jaeger's form, or None while it has none."""
        try:
            with urllib.request.urlopen(f"http://{self.query}/api/traces/{CALLER[0]}",
                                        timeout=harness.TIMEOUT_SECONDS) as answer:
                return json.load(answer)["data"][0]
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    @property
    def spans(self):
        trace = self.trace() or {"spans": [], "processes": {}}
        return [span_of(span, trace["processes"]) for span in trace["spans"]]

    @property
    def resources(self):
        processes = [attributes_of(process["tags"]) | {"service.name": process["serviceName"]}
                     for process in (self.trace() or {"processes": {}})["processes"].values()]
        return {process["service.instance.id"]: process for process in processes}

    def wait_for(self, reached, seconds):
        end = time.monotonic() + seconds
        while not reached(self):
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_SECONDS)
        return True


def attributes_of(tags):
    return {tag["key"]: tag["value"] for tag in tags}


def span_of(span, processes):
    """A span of Jaeger's as the test knows them: what follows from others links to them."""
    attributes = attributes_of(span["tags"])
    parents = [of["spanID"] for of in span["references"] if of["refType"] == "CHILD_OF"]
    links = [(of["traceID"], of["spanID"]) for of in span["references"] if of["refType"] == "FOLLOWS_FROM"]
    return Span(span["operationName"], attributes.get("span.kind", "").upper(), span["spanID"], "".join(parents[:1]),
                span["traceID"], links, attributes, attributes.get("error", False), span["startTime"],
                span["startTime"] + span["duration"], processes[span["processID"]]["serviceName"])


class JaegerTest(OneTraceTest, MeshTest):
    def make_receiver(self):
        return Jaeger(self.folder)


if __name__ == "__main__":
    for name in ("MUSTER_COLLECTOR", "MUSTER_JAEGER"):
        if name not in os.environ:
            print(f"skipped: {name} is not set; scripts/prove tracing builds the program")
            sys.exit(77)
    harness.main()
