"""What a mesh of real programs sends to an OpenTelemetry collector: one trace for a batch, in which nothing is
missing, also after a kill; its metrics; its logs. A collector that hangs keeps no work waiting."""

import json
import os
import sys
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
from mesh_case import Gate, MeshTest

# A line that says "dead" gives its item up, and one that says "wait" waits at the gate. Notes the context that
# each item brings.
PROGRAM = """
import json, sys
for line in sys.stdin:
    item = json.loads(line)
    with open(sys.argv[1], "a") as told:
        print(item["item"], item.get("traceparent"), file=told)
    texts = [t["fields"][0] for t in item["transactions"]]
    if "wait" in texts:
        open(sys.argv[2]).close()
    if "dead" in texts:
        print(json.dumps({"item": item["item"], "outcome": "dead", "why": "it is poison"}), flush=True)
        continue
    rows = [{"text": text, "lines": 1} for text in texts]
    print(json.dumps({"item": item["item"], "outcome": "ok", "groups": {"by_text": rows},
                      "rejected": []}), flush=True)
"""
JOB = """
name: words
input: {{format: lines}}
item: {{transactions: 2}}
queue: {{visibility: 2s}}
handler: {{command: [python3, {program}, {told}, {gate}]}}
groups:
  - {{name: by_text, keys: [text], measures: {{lines: int}}}}
"""
CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = "00-%s-%s-01" % CALLER


class TracedMesh(Mesh):
    """A mesh whose controller shows metrics, too."""

    def __init__(self, metrics, *arguments):
        super().__init__(*arguments)
        self.metrics = metrics

    def start_role(self, role, address=None, *more, data=None):
        if role == "controller":
            more += "--metrics", self.metrics
        return super().start_role(role, address, *more, data=data)


class CollectedTest:
    """A test whose programs send to a receiver of its own."""

    def open_receiver(self):
        self.receiver = Receiver()
        self.addCleanup(self.receiver.stop)
        for name, value in {"OTEL_EXPORTER_OTLP_ENDPOINT": self.receiver.endpoint,
                            "OTEL_METRIC_EXPORT_INTERVAL": "100",
                            "OTEL_EXPORTER_OTLP_TIMEOUT": "500ms",
                            "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test",
                            "TRACEPARENT": TRACEPARENT}.items():
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name)
        self.gate = Gate(self.folder / "gate")
        self.addCleanup(self.gate.open)
        self.told = self.folder / "told"
        self.job = self.write("words.yaml", JOB.format(
            program=self.write("program.py", PROGRAM), told=self.told, gate=self.gate.path))

    def lines(self, *lines):
        return self.write("in.txt", "\n".join(lines) + "\n")

    def spans(self, name):
        return [span for span in self.receiver.spans if span.name == name and span.trace == CALLER[0]]

    def await_spans(self, name, count):
        reached = self.receiver.wait_for(lambda _: len(self.spans(name)) >= count, READY_SECONDS)
        self.assertTrue(reached, f"{name}: {len(self.spans(name))} of {count}; there are "
                                 f"{sorted(span.name for span in self.receiver.spans)}")
        return self.spans(name)


class RunTest(CollectedTest, MusterTest):
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

    def test_a_variable_that_is_wrong_is_refused_by_name(self):
        self.open_receiver()
        os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf"
        self.addCleanup(os.environ.pop, "OTEL_EXPORTER_OTLP_PROTOCOL")
        done = self.muster("run", str(self.job), "--input", str(self.lines("a")))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("OTEL_EXPORTER_OTLP_PROTOCOL", done.stderr)


class OtlpTest(CollectedTest, MeshTest):
    def make_mesh(self):
        return TracedMesh(self.metrics, self.folder, self.nats_server, self.nats_servers)

    def start_mesh(self):
        self.open_receiver()
        super().start_mesh()

    def setUp(self):
        self.metrics = free_address()
        super().setUp()
        self.answer("job", "apply", self.job)

    def begin(self, *lines, traceparent=TRACEPARENT):
        os.environ["TRACEPARENT"] = traceparent
        return self.start_submit("words", self.lines(*lines))

    def end(self, submission):
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        result = json.loads(out)
        self.assertTrue(result["complete"], errors)
        return result

    def await_links(self, name, expected):
        """Waits until spans of this name link to each of `expected`, and to nothing else."""
        def linked():
            return {span for of in self.spans(name) for _, span in of.links}
        self.receiver.wait_for(lambda _: linked() == set(expected), READY_SECONDS)
        self.assertEqual(linked(), set(expected), name)

    def assert_trace_is_whole(self, items, dead=0):
        """Follows the batch's trace from the submit to the commit."""
        [batch] = self.await_spans("batch words", 1)
        self.assertEqual(batch.parent, CALLER[1])
        self.assertEqual(batch.attributes["muster.items"], items)
        self.assertEqual(batch.attributes["muster.outcome"], "complete")
        [submit] = self.await_spans("submit words", 1)
        self.assertEqual((submit.parent, submit.kind, submit.service), (batch.id, "SERVER", "muster-initiator"))
        creates = {span.attributes["messaging.message.id"]: span for span in self.await_spans("create words-in", items)}
        self.assertEqual(len(creates), items)
        self.assertEqual({(span.parent, span.kind) for span in creates.values()}, {(batch.id, "PRODUCER")})
        made = [span.id for span in creates.values()]
        self.await_links("send words-in", made)
        self.assertEqual(sum(span.attributes["messaging.batch.message_count"]
                             for span in self.spans("send words-in")), items)
        self.await_links("receive words-in", made)
        processed = self.assert_processed(creates, dead)
        done = [span.id for span in processed.values()]
        given_up = [creates[item].id for item in creates if item not in processed]
        self.assertEqual(len(given_up), dead)
        for name in ("receive words-out", "commit report", "settle words-out"):
            self.await_links(name, done + given_up)
            self.assertEqual({(span.parent, span.kind, span.service) for span in self.spans(name)},
                             {(batch.id, "CLIENT", "muster-controller")})
        self.assert_nothing_dangles()
        return batch, creates, processed

    def assert_processed(self, creates, dead):
        """The process span of each item's last attempt, by item, without those that were given up."""
        self.await_spans("process words-in", len(creates))
        processed = {}
        for span in self.spans("process words-in"):
            item = span.attributes["messaging.message.id"]
            self.assertEqual((span.parent, span.kind), (creates[item].id, "CONSUMER"))
            self.assertEqual(span.attributes["messaging.destination.name"], "words-in")
            self.assertLessEqual(span.start, span.end)
            if span.attributes["muster.outcome"] == "ok":
                processed[item] = span
        self.assertEqual(len(processed), len(creates) - dead)
        settled = self.await_spans("settle words-in", len(creates))
        by_id = {span.id for span in self.spans("process words-in")}
        self.assertEqual({span.parent for span in settled} - by_id, set())
        return processed

    def assert_nothing_dangles(self):
        of_trace = [span for span in self.receiver.spans if span.trace == CALLER[0]]
        known = {span.id for span in of_trace} | {CALLER[1]}
        self.assertEqual(len(known), len(of_trace) + 1, "two spans share an id")
        for span in of_trace:
            self.assertIn(span.parent, known, span)
            self.assertEqual({trace for trace, _ in span.links} - {CALLER[0]}, set(), span)
            self.assertEqual({link for _, link in span.links} - known, set(), span)
            self.assertEqual(span.attributes.get("muster.batch"), "1", span)

    def test_a_batch_is_one_trace_from_the_submit_to_the_commit(self):
        self.end(self.begin("a", "b", "c", "dead", "e", "f", "g"))
        _, _, processed = self.assert_trace_is_whole(items=4, dead=1)
        [dead] = [span for span in self.spans("process words-in") if span.error]
        self.assertEqual(dead.attributes["error.type"], "dead")
        # The spans of a handler lie below the attempt.
        told = dict(line.split() for line in self.told.read_text().splitlines())
        for item, span in processed.items():
            self.assertEqual(told[item], f"00-{span.trace}-{span.id}-01")
        services = {of["service.name"] for of in self.receiver.resources.values()}
        self.assertEqual(services, {"muster-initiator", "muster-controller", "muster-processor"})
        for of in self.receiver.resources.values():
            self.assertEqual((of["deployment.environment"], of["service.namespace"]), ("test", "muster"))
            self.assertTrue(of["service.version"])

    def test_none_is_missing_after_a_processor_was_killed(self):
        submission = self.begin("a", "b", "c", "d", "wait", "f", "g", "h")
        # All but the item that waits; then its holder is killed.
        self.await_spans("settle words-in", 3)
        waiting = self.told_waiting()
        for processor in self.mesh.processors:
            processor.kill()
        self.gate.open()
        for processor in self.mesh.processors:
            processor.restart()
        self.assertEqual(self.end(submission)["aggregated"], 8)
        _, _, processed = self.assert_trace_is_whole(items=4)
        attempt = processed[waiting].attributes["muster.attempt"]
        self.assertGreater(attempt, 1, "the attempt that was killed counts, and has no span")

    def told_waiting(self):
        return [line.split()[0] for line in self.told.read_text().splitlines()
                if line.split()[0].endswith("/2")][0]

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
