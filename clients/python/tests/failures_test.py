# SPDX-License-Identifier: Apache-2.0
"""What the client does when a retry, a list of rejections or an output does not go through at once."""

import concurrent.futures
import unittest
import unittest.mock

import grpc

import muster
from muster.v1 import (batch_service_pb2, batch_service_pb2_grpc, heartbeat_pb2, item_result_pb2,
                       job_schema_pb2, mesh_service_pb2, mesh_service_pb2_grpc, report_service_pb2,
                       report_service_pb2_grpc)


class FakeMesh(batch_service_pb2_grpc.BatchServiceServicer, mesh_service_pb2_grpc.MeshServiceServicer,
               report_service_pb2_grpc.ReportServiceServicer):
    """An initiator, and the controller that it lists."""

    def __init__(self):
        self.retries = []  # what each RetryRejections is answered with: batches and "more", or a code
        self.retried = []
        self.rejections = []
        self.read = 0  # calls of ReadRecords, each of which is answered with one record
        self.unlisted = 0  # the first lists have no controller
        self.unheard = 0  # the lists before those have no answer
        self.listed = 0  # so far
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        batch_service_pb2_grpc.add_BatchServiceServicer_to_server(self, self.server)
        mesh_service_pb2_grpc.add_MeshServiceServicer_to_server(self, self.server)
        report_service_pb2_grpc.add_ReportServiceServicer_to_server(self, self.server)
        self.address = "127.0.0.1:%d" % self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def RetryRejections(self, request, context):
        self.retried.append(request)
        batches, more = self.retries.pop(0)
        if batches is None:
            context.abort(more, "too much waits")
        return batch_service_pb2.RetryRejectionsResponse(more=more, retries=[
            batch_service_pb2.RetriedBatch(batch=batch, transactions=count, is_new=True)
            for batch, count in batches.items()])

    def ReadRecords(self, request, context):
        """The first that is asked for: a message has no room for more."""
        self.read += 1
        item, line = request.items[0].item, request.items[0].lines[0]
        return batch_service_pb2.ReadRecordsResponse(
            more=sum(len(wanted.lines) for wanted in request.items) > 1,
            records=[batch_service_pb2.SubmittedRecord(item=item, line=line, record=b"record %d" % line)])

    def ListInstances(self, request, context):
        self.listed += 1
        if self.listed <= self.unheard:
            context.abort(grpc.StatusCode.UNAVAILABLE, "about to stop")
        if self.listed <= self.unheard + self.unlisted:
            return mesh_service_pb2.ListInstancesResponse()
        return mesh_service_pb2.ListInstancesResponse(instances=[
            mesh_service_pb2.Instance(info=heartbeat_pb2.InstanceInfo(address=self.address))])

    def ListRejections(self, request, context):
        return report_service_pb2.ListRejectionsResponse(
            rejections=[] if request.HasField("after") else self.rejections)

    def GetReport(self, request, context):
        yield report_service_pb2.GetReportResponse(schema=job_schema_pb2.GroupSchema(
            name="by_customer", keys=["customer"],
            measures=[job_schema_pb2.MeasureSchema(name="revenue", scale=2)]))
        yield report_service_pb2.GetReportResponse(rows=report_service_pb2.ReportRows(
            rows=[item_result_pb2.PartialRow(keys=["Ada"], measures=["1.50"])]))

    def GetOutput(self, request, context):
        return report_service_pb2.GetOutputResponse(
            columns=[job_schema_pb2.OutputColumn(name="note", type="OUTPUT_TYPE_TEXT")],
            records=[item_result_pb2.OutputRecord(line=1, fields=["paid"])])


class FakeTime:
    """Passes while it is slept."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class FailuresTest(unittest.TestCase):
    def setUp(self):
        self.mesh = FakeMesh()
        self.addCleanup(lambda: self.mesh.server.stop(0).wait())
        self.client = self.connect()
        self.time = FakeTime()
        patch = unittest.mock.patch("muster._patience.time", self.time)
        patch.start()
        self.addCleanup(patch.stop)

    def connect(self, **options):
        client = muster.Client(self.mesh.address, **options)
        self.addCleanup(client.close)
        return client


class RetryTest(FailuresTest):
    def test_all_that_was_rejected_is_retried_until_nothing_is_left(self):
        self.mesh.retries = [({9: 50_000}, True), ({10: 1}, False)]
        self.assertEqual(self.client.retry_rejections(7), [
            muster.RetriedBatch(9, 50_000, True), muster.RetriedBatch(10, 1, True)])
        self.assertEqual([(asked.batch, list(asked.lines), asked.all) for asked in self.mesh.retried],
                         [(7, [], True)] * 2)

    def test_a_thousand_lines_are_retried_with_each_call(self):
        self.mesh.retries = [({9: 1000}, False), ({10: 1}, False)]
        self.client.retry_rejections(7, range(1, 1002))
        self.assertEqual([(len(asked.lines), asked.lines[-1], asked.all) for asked in self.mesh.retried],
                         [(1000, 1000, False), (1, 1001, False)])

    def test_what_was_retried_before_a_failure_comes_with_it(self):
        self.mesh.retries = [({9: 50_000}, True), (None, grpc.StatusCode.RESOURCE_EXHAUSTED)]
        with self.assertRaises(muster.ResourceExhausted) as caught:
            self.client.retry_rejections(7)
        self.assertEqual(caught.exception.retried, (muster.RetriedBatch(9, 50_000, True),))

    def test_items_that_were_given_up_are_retried_by_their_index(self):
        self.mesh.retries = [({9: 1}, False), ({10: 20}, False)]
        self.client.retry_rejections(7, [30], items=[0, 12])
        self.assertEqual([(list(asked.lines), list(asked.items), asked.all)
                          for asked in self.mesh.retried], [([30], [], False), ([], [0, 12], False)])

    def test_no_line_is_not_taken_for_all(self):
        with self.assertRaises(ValueError):
            self.client.retry_rejections(7, [])
        with self.assertRaises(ValueError):
            self.client.retry_rejections(7, items=[])
        self.assertEqual(self.mesh.retried, [])


class RejectionsTest(FailuresTest):
    def test_no_more_records_are_kept_than_one_answer_has(self):
        self.mesh.rejections = [
            report_service_pb2.RejectedTransaction(item=0, line=1),
            report_service_pb2.RejectedTransaction(item=0, line=4),
            report_service_pb2.RejectedTransaction(item=2, line=9, retried_in=8, retry_of_line=3)]
        found = self.client.rejections(7)
        for count, (line, retried_in) in enumerate([(1, 0), (4, 0), (9, 8)], 1):
            failed = next(found)
            self.assertEqual((failed.line, failed.record, failed.retried_in),
                             (line, b"record %d" % line, retried_in))
            self.assertEqual(self.mesh.read, count)
        self.assertEqual(list(found), [])


class ReportTest(FailuresTest):
    def test_a_report_is_read_also_without_patience(self):
        rows = self.connect(patience=0).report(7, "by_customer")
        self.assertEqual([str(row.measures["revenue"]) for row in rows], ["1.50"])


class OutputTest(FailuresTest):
    def test_the_output_waits_for_a_controller_as_long_as_its_patience(self):
        client = self.connect(patience=120, timeout=10)
        self.mesh.unheard, self.mesh.unlisted = 6, 20  # gRPC by itself asks five times
        self.assertEqual([record.values["note"] for record in client.output(7)], ["paid"])
        self.assertEqual(self.mesh.listed, 27)
        self.assertGreater(self.time.now, 30)

    def test_an_output_without_a_controller_says_so_in_the_end(self):
        self.mesh.unlisted = 1 << 30
        with self.assertRaisesRegex(muster.Unavailable, "has heard of no controller: start one"):
            list(self.client.output(7))
        self.assertGreater(self.time.now, 120)

    def test_other_reads_wait_for_a_controller_as_long_as_one_call_takes(self):
        self.mesh.unlisted = 1 << 30
        with self.assertRaises(muster.Unavailable):
            list(self.client.rejections(7))
        self.assertTrue(30 < self.time.now < 120, self.time.now)


if __name__ == "__main__":
    unittest.main()
