# SPDX-License-Identifier: Apache-2.0
"""An initiator that ends in the middle of an upload, seen by a client of its protocol: killed, with
its content shortened by a power cut, and restored from a backup.

Needs Debian's grpcio: the client takes one step at a time, and so knows when each byte was
acknowledged.
"""

import importlib
import queue
import shutil
import subprocess
import sys

import grpc
import harness
import mesh_case
import xxhash
from harness import ROOT, retail_input
from mesh import READY_SECONDS
from mesh_on_newest_server_test import OnNewestServer

PIECE_BYTES = 1 << 20
ROWS = 60000


def load_messages():
    """Returns the messages of the batch service, as protoc makes them for Python."""
    folder = harness.folder_of_program("muster-messages-")
    subprocess.run(
        [shutil.which("protoc"), f"--proto_path={ROOT / 'proto'}", f"--python_out={folder}",
         "muster/v1/batch.proto", "muster/v1/batch_service.proto"], check=True)
    sys.path.insert(0, str(folder))
    return importlib.import_module("muster.v1.batch_service_pb2")


v1 = load_messages()


class Upload:
    """One stream of BatchService.Submit, which the initiator has accepted when the constructor
    returns."""

    def __init__(self, server, content, **header):
        self.content = content
        self.requests = queue.SimpleQueue()
        # A separate channel: the one before may still be waiting to try again.
        self.channel = grpc.insecure_channel(server)
        ask = self.channel.stream_stream("/muster.v1.BatchService/Submit",
                                         v1.SubmitRequest.SerializeToString,
                                         v1.SubmitResponse.FromString)
        self.responses = ask(iter(self.requests.get, None), timeout=READY_SECONDS,
                             wait_for_ready=True)
        self.send(header=v1.SubmitHeader(size_hint=len(content), **header))
        self.accepted = next(self.responses).accepted
        self.sent = self.durable = self.accepted.durable_offset

    def send(self, **step):
        self.requests.put(v1.SubmitRequest(**step))

    def send_piece(self):
        data = self.content[self.sent:self.sent + PIECE_BYTES]
        self.send(chunk=v1.SubmitChunk(offset=self.sent, data=data))
        self.sent += len(data)

    def await_durable(self, offset):
        while self.durable < offset:
            self.durable = next(self.responses).durable.durable_offset

    def seal(self):
        """Seals the upload; returns the batch's status in the answer."""
        digest = xxhash.xxh3_128_digest(self.content)
        self.send(seal=v1.SubmitSeal(size=len(self.content), content_hash=digest))
        for response in self.responses:
            if response.WhichOneof("step") == "sealed":
                return response.sealed.status
        raise AssertionError("the stream ended without an answer to the seal")

    def hear_to_the_end(self):
        """Reads acknowledgements until the stream breaks; returns the status code."""
        try:
            for response in self.responses:
                self.durable = response.durable.durable_offset
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    def close(self):
        self.requests.put(None)
        self.channel.close()


class UploadKillTest(mesh_case.MeshTest):
    def setUp(self):
        super().setUp()
        self.apply_billing()
        self.data = retail_input(ROWS)
        self.content = self.data.read_bytes()

    def upload(self):
        upload = Upload(self.mesh.server, self.content, job="billing", request_id=b"march")
        self.addCleanup(upload.close)
        return upload

    def resume_behind_a_kill(self, cut):
        self.mesh.initiator.kill()
        self.mesh.initiator.restart()
        self.assertEqual(cut.hear_to_the_end(), grpc.StatusCode.UNAVAILABLE)
        [batch] = self.answer("batch", "list")
        self.assertEqual((batch["batch"], batch["state"]), (cut.accepted.batch, "open"))
        resumed = self.upload()
        self.assertEqual(resumed.accepted.batch, cut.accepted.batch)
        return resumed

    def assert_ends_exactly_once(self, upload):
        """Sends the remaining content."""
        while upload.sent < len(self.content):
            upload.send_piece()
        self.assertEqual(upload.seal().batch, upload.accepted.batch)
        # The same submission waits for that batch, and makes no new one.
        result = self.submit("billing", self.data, "march")
        self.assertEqual(result["batch"], upload.accepted.batch)
        self.assert_exact(self.data, ROWS, result)
        self.assertEqual(len(self.answer("batch", "list")), 1)

    def test_what_was_acknowledged_outlives_the_initiator_and_is_not_sent_again(self):
        cut = self.upload()
        self.assertEqual(cut.accepted.durable_offset, 0)
        for _ in range(3):
            cut.send_piece()
        cut.await_durable(3 * PIECE_BYTES)
        resumed = self.resume_behind_a_kill(cut)
        self.assertEqual(resumed.accepted.durable_offset, 3 * PIECE_BYTES)
        self.assert_ends_exactly_once(resumed)

    def test_each_killed_initiator_goes_on_between_what_was_acknowledged_and_what_was_sent(self):
        upload = self.upload()
        for _ in range(2):
            upload.send_piece()
            upload.await_durable(upload.sent)
            upload.send_piece()  # which may arrive or not
            cut, upload = upload, self.resume_behind_a_kill(upload)
            self.assertGreaterEqual(upload.accepted.durable_offset, cut.durable)
            self.assertLessEqual(upload.accepted.durable_offset, cut.sent)
        self.assert_ends_exactly_once(upload)


    def await_problem(self, batch, words):
        found = self.await_batch(batch, lambda batch: words in batch.get("problem", ""))
        doctor = self.ask("doctor")
        self.assertEqual(doctor.returncode, 1)
        self.assertIn(words, doctor.stdout)
        return found

    def test_sealed_content_that_has_become_shorter_makes_no_batch(self):
        upload = self.upload()
        upload.send_piece()
        upload.await_durable(upload.sent)
        # The initiator cannot put more items, so the content is not split when it dies.
        self.mesh.nats.freeze()
        while upload.sent < len(self.content):
            upload.send_piece()
        batch = upload.seal().batch
        self.mesh.initiator.kill()
        # A disk that has lied about its syncs.
        file = self.mesh.folder / "initiator/uploads" / str(batch)
        with open(file, "r+b") as stream:
            stream.truncate(len(self.content) - 100000)
        self.mesh.nats.thaw()
        self.mesh.initiator.restart()
        found = self.await_problem(batch, f"has {len(self.content) - 100000} bytes, and was sealed")
        self.assertEqual(found["state"], "open")

        file.write_bytes(self.content)
        self.mesh.initiator.kill()
        self.mesh.initiator.restart()
        result = self.submit("billing", self.data, "march")
        self.assertEqual(result["batch"], batch)
        self.assert_exact(self.data, ROWS, result)

    def restore_elsewhere(self, old_stays):
        """Stops the initiator, and starts it with a copy of its data directory at another path."""
        self.assertEqual(self.mesh.initiator.stop(), 0)
        old, new = self.mesh.folder / "initiator", self.mesh.folder / "restored"
        if old_stays:
            shutil.copytree(old, new)
        else:
            shutil.move(old, new)
        argv = self.mesh.initiator.argv
        argv[argv.index(str(old))] = str(new)
        self.mesh.initiator.restart()

    def assert_goes_on_elsewhere(self, old_stays):
        cut = self.upload()
        for _ in range(3):
            cut.send_piece()
        cut.await_durable(3 * PIECE_BYTES)
        cut.close()  # an initiator that stops waits for its uploads
        self.restore_elsewhere(old_stays)
        resumed = self.upload()
        self.assertEqual(resumed.accepted.batch, cut.accepted.batch)
        self.assertEqual(resumed.accepted.durable_offset, 3 * PIECE_BYTES)
        self.assert_ends_exactly_once(resumed)

    def test_an_open_batch_goes_on_when_its_data_directory_has_moved(self):
        self.assert_goes_on_elsewhere(old_stays=False)

    def test_an_open_batch_goes_on_in_a_backup_that_is_restored_elsewhere(self):
        self.assert_goes_on_elsewhere(old_stays=True)


class UploadKillOnNewestServerTest(OnNewestServer, UploadKillTest):
    pass


if __name__ == "__main__":
    harness.main()
