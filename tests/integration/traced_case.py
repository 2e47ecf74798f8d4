# SPDX-License-Identifier: Apache-2.0
"""A batch whose programs send their spans to a receiver: what its trace has to be."""

import collections
import json
import os

import harness
from mesh import READY_SECONDS
from mesh_case import Gate

Span = collections.namedtuple("Span", "name kind id parent trace links attributes error start end service")

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


class CollectedTest:
    """A test whose programs send to a receiver of its own, which `make_receiver` starts: it has an `endpoint`,
    the `spans` (Span) and `resources` (attributes by service instance) that it was sent, `wait_for` and `stop`."""

    def open_receiver(self):
        self.receiver = self.make_receiver()
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


class OneTraceTest(CollectedTest):
    """Of a mesh (MeshTest), whose batch is one trace in the receiver."""

    def start_mesh(self):
        self.open_receiver()
        super().start_mesh()

    def setUp(self):
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
        self.assert_named_by_the_conventions()
        self.assert_nothing_dangles()
        return batch, creates, processed

    def assert_named_by_the_conventions(self):
        """Each span of a queue has the attributes of OpenTelemetry's conventions for messaging."""
        for span in self.receiver.spans:
            operation, _, queue = span.name.partition(" ")
            if span.trace != CALLER[0] or queue not in ("words-in", "words-out"):
                continue
            said = span.attributes
            self.assertEqual(
                (said["messaging.system"], said["messaging.operation.name"], said["messaging.operation.type"],
                 said["messaging.destination.name"]), ("muster", operation, operation, queue), span)
            of_one = operation in ("create", "process") or span.name == "settle words-in"
            self.assertEqual("messaging.message.id" in said, of_one, span)
            self.assertEqual("messaging.batch.message_count" in said, not of_one, span)

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
        self.assertLessEqual({span.attributes["messaging.message.id"] for span in settled}, creates.keys())
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
