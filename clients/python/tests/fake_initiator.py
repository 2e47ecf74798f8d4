# SPDX-License-Identifier: Apache-2.0
"""An initiator that does what a test tells it, for what a real one does only in bad moments."""

import concurrent.futures
import itertools
import threading

import grpc
import xxhash

from muster.v1 import batch_pb2, batch_service_pb2, batch_service_pb2_grpc

PATIENCE_SECONDS = 30


def packed(code, message, *details):
    """Trailing metadata with google.rpc details, given as (name, message)."""
    from google.protobuf import any_pb2
    from muster.rpc_details import status_pb2
    status = status_pb2.Status(code=code.value[0], message=message, details=[
        any_pb2.Any(type_url=f"type.googleapis.com/google.rpc.{name}",
                    value=detail.SerializeToString()) for name, detail in details])
    return (("grpc-status-details-bin", status.SerializeToString()),)


class FakeInitiator(batch_service_pb2_grpc.BatchServiceServicer):
    """Keeps one upload. Stops each stream as `breaks` says, the first by the first, and so on."""

    def __init__(self):
        self.content = b""
        self.batch = 7
        self.breaks = []  # functions of (bytes there, context)
        self.refuses = None  # what a submit is answered with, as fails_with
        self.acknowledges = True
        self.unsealed = None  # what each seal is answered with: a code
        self.accepts_late = False  # only when something was sent behind the header
        self.headers = []
        self.received = 0
        self.arrived = threading.Condition()
        self.watches = []  # lists of revisions; each call takes one, and breaks unless it is the last
        self.watched_after = []
        self.fails_with = None
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        batch_service_pb2_grpc.add_BatchServiceServicer_to_server(self, self.server)
        self.address = "127.0.0.1:%d" % self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def close(self):
        self.server.stop(0).wait()

    def await_chunks(self, count, seconds=PATIENCE_SECONDS):
        with self.arrived:
            return self.arrived.wait_for(lambda: self.received >= count, seconds)

    def Submit(self, requests, context):
        self.headers.append(next(requests).header)
        if self.refuses is not None:
            self.fail(context, *self.refuses)
        breaks = self.breaks.pop(0) if self.breaks else lambda there, context: None
        if self.accepts_late:
            requests = itertools.chain([next(requests)], requests)
        yield self.response(accepted=batch_service_pb2.SubmitAccepted(
            batch=self.batch, durable_offset=len(self.content)))
        for request in requests:
            if request.HasField("seal"):
                if self.unsealed is not None:
                    context.abort(self.unsealed, "the disk fails")
                whole = xxhash.xxh3_128(self.content).digest()
                if (request.seal.size, request.seal.content_hash) != (len(self.content), whole):
                    context.abort(grpc.StatusCode.DATA_LOSS, "another hash")
                yield self.response(sealed=batch_service_pb2.SubmitSealed(
                    status=batch_service_pb2.BatchStatus(batch=self.batch)))
                return
            if request.chunk.offset != len(self.content):
                context.abort(grpc.StatusCode.OUT_OF_RANGE, "a gap")
            self.content += request.chunk.data
            with self.arrived:
                self.received += 1
                self.arrived.notify_all()
            if self.acknowledges:
                yield self.response(durable=batch_service_pb2.SubmitDurable(
                    durable_offset=len(self.content)))
            breaks(len(self.content), context)

    @staticmethod
    def response(**step):
        return batch_service_pb2.SubmitResponse(**step)

    def WatchBatch(self, request, context):
        self.watched_after.append(request.after_revision)
        for revision in self.watches.pop(0):
            last = not self.watches
            yield batch_service_pb2.WatchBatchResponse(status=batch_service_pb2.BatchStatus(
                batch=request.batch, revision=revision, complete=last,
                state=batch_pb2.BATCH_STATE_COMPLETE if last else batch_pb2.BATCH_STATE_SEALED))
        if self.watches:
            context.abort(grpc.StatusCode.UNAVAILABLE, "about to stop")

    def GetBatch(self, request, context):
        self.fail(context, *self.fails_with)

    @staticmethod
    def fail(context, code, message, details):
        context.set_trailing_metadata(packed(code, message, *details))
        context.abort(code, message)
