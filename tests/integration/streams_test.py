# SPDX-License-Identifier: Apache-2.0
"""A mesh whose streams are wrong: created by another program with other settings, lost with all of the
NATS server's data, or set back to a copy of before. The tests run on each server that MUSTER_NATS_SERVERS
names."""

import base64
import json
import random
import shutil
import signal
import threading

import harness
from harness import looks, retail_input
from mesh import NATS_SERVERS, READY_SECONDS, Mesh, free_address
from mesh_case import FREE_ITEMS, GATED, ROWS, ROWS_PER_ITEM, FaultTest, Gate, MeshTest
from nats_snapshot import restore_stream, take_stream
from nats_wire import NatsWire

INPUT, OUTPUT = "MUSTER_local_billing-in-0", "MUSTER_local_billing-out-0"
OUTPUT_SUBJECT = "muster.queue.local.billing-out-0"
# Of batch 999, with an outcome in field 900: a controller leaves it to a newer one.
RESULT_OF_A_NEWER_FORM = b"\x08\xe7\x07" + b"\xa0\x38\x01"


def wire(mesh):
    return NatsWire(mesh.nats_addresses[0])


def set_otherwise(nats, stream, subject):
    """Creates a stream of this name with settings that muster cannot use."""
    nats.api(f"STREAM.CREATE.{stream}", name=stream, subjects=[subject], storage="memory")


class OtherwiseAtStartTest(MeshTest):
    BUCKETS = {"KV_muster": "$KV.muster.>", "OBJ_muster": "$O.muster.C.>"}

    def start_mesh(self):
        pass  # each test creates its streams first

    def test_every_service_says_what_is_in_its_way_and_goes_on_when_it_is_mended(self):
        self.mesh.start_nats().await_ready()
        nats = wire(self.mesh)
        self.addCleanup(nats.close)
        for bucket, subject in self.BUCKETS.items():
            set_otherwise(nats, bucket, subject)
        roles = [self.mesh.start_role("initiator", self.mesh.server),
                 self.mesh.start_role("controller", self.mesh.reporter),
                 self.mesh.start_role("processor", None, "--threads", 1)]
        self.mesh.initiator, self.mesh.controller, *self.mesh.processors = roles
        for bucket in self.BUCKETS:
            for role in roles:
                role.await_line(f"stream {bucket} is there")
            early = self.ask("batch", "list")
            self.assertEqual((early.returncode, early.stdout), (5, ""))
            for word in (bucket, 'storage is "memory", not "file"', "delete the stream"):
                self.assertIn(word, early.stderr)
            nats.api(f"STREAM.DELETE.{bucket}")
        for role in roles:
            role.await_ready()
        data = retail_input(ROWS)
        self.apply_billing()
        self.assert_exact(data, ROWS, self.submit("billing", data))


class OtherwiseMeanwhileTest(FaultTest):
    """Another program replaces a queue's stream in mid-batch."""

    def await_problem(self, *words):
        for _ in looks(READY_SECONDS):
            findings = json.loads(self.ask("doctor", "-o", "json").stdout)
            if any(f["what"] == "batch 1" and all(word in f["found"] for word in words)
                   for f in findings):
                return
        self.fail(f"nobody says {words}: {findings}")

    def replace(self, stream):
        nats = wire(self.mesh)
        self.addCleanup(nats.close)
        nats.api(f"STREAM.DELETE.{stream}")
        set_otherwise(nats, stream, "elsewhere")
        self.await_problem(stream, 'storage is "memory", not "file"')
        for program in self.mesh.programs:
            self.assertIsNone(program.process.poll(), f"{program.argv[0]} has ended")
        # A client that submits meanwhile gets the reason.
        other = self.retail_rows((3, "0.1", "7", "France"))
        late = self.start_submit("billing", other, request_id="april")
        said = ""
        while stream not in said:
            line = late.stderr.readline()
            self.assertNotEqual(line, "", f"it said only {said}")
            said += line
        self.assertIn("waits", said)
        nats.api(f"STREAM.DELETE.{stream}")
        self.gate.open()
        out, errors = late.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(late.returncode, 0, errors)
        self.assert_exact(other, 1, json.loads(out))
        out, errors = self.submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(self.submission.returncode, 0, errors)
        self.assertIn(stream, errors)
        self.assert_exact(self.data, ROWS, json.loads(out))

    def test_items_wait_for_their_queue_to_be_mended(self):
        self.replace(INPUT)

    def test_results_wait_for_their_queue_to_be_mended(self):
        self.replace(OUTPUT)


class Supervisor:
    """Restarts a server that ends by itself, as an init system does. Version 2.9 may: on a request
    for a message of a stream that it is just creating, it sometimes ends with a nil pointer."""

    def __init__(self, server):
        self.server = server
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stopping.wait(0.1):
            if self.server.process.poll() is not None:
                self.server.start()

    def stop(self):
        self.stopping.set()
        self.thread.join()


class LostStoreTest(FaultTest):
    """The server loses all of its data in mid-batch: queues, jobs, and the count of batches."""

    def lose_store(self):
        shutil.rmtree(self.folder / "nats0")

    def supervise(self):
        self.addCleanup(Supervisor(self.mesh.nats).stop)

    def assert_goes_on(self, submissions):
        """Asserts that later submissions work, too, and that each makes its own batch."""
        self.assert_ends_exactly_once()
        other = self.retail_rows((3, "0.1", "7", "France"))
        numbers = []
        for number in range(submissions):
            result = self.submit("billing", other, f"april {number}")
            self.assert_exact(other, 1, result)
            numbers.append(result["batch"])
        self.assertEqual(len({1, *numbers}), 1 + submissions, numbers)
        # The counter is lost, and begins in a range that no other initiator has reached.
        self.assertGreater(numbers[-1], 200_000_000)
        self.assert_report_is_the_direct_sum(self.data, 1)
        self.assertEqual([job["job"] for job in self.answer("job", "list")], ["billing"])
        for queue in self.answer("queue", "list"):
            self.assertEqual([queue["ready"], queue["in_flight"], queue["poison"]], [0, 0, 0], queue)

    def test_a_server_that_lost_its_data_gets_all_that_is_open_again(self):
        self.mesh.nats.kill()
        self.lose_store()
        self.mesh.nats.restart()
        self.supervise()
        # The initiator has nine more numbers in its range.
        self.assert_goes_on(submissions=10)

    def test_services_that_begin_with_an_empty_server_bring_their_batches_back(self):
        for program in self.mesh.programs:
            program.signal(signal.SIGKILL)
        for program in self.mesh.programs:
            program.wait()
        self.lose_store()
        for program in self.mesh.programs:
            program.start()
        self.supervise()
        for program in self.mesh.programs:
            program.await_ready()
        self.assert_goes_on(submissions=1)


class LostLargeItemsTest(FaultTest):
    """Items that do not fit into a message lie in a bucket, which is lost as well."""

    ROW_BYTES = 8000
    item_size = "4MiB"
    content = "inline"

    def make_data(self):
        noise = random.Random(7)
        rows = retail_input(ROWS).read_text().splitlines()
        for i in range(1, len(rows)):
            fields = rows[i].split(",", 2)
            fields[1] = base64.b64encode(noise.randbytes(self.ROW_BYTES)).decode()
            rows[i] = ",".join(fields)
        return self.write("large.csv", "\n".join(rows) + "\n")

    def test_large_items_are_made_again(self):
        nats = wire(self.mesh)
        self.addCleanup(nats.close)
        self.assertGreater(nats.api("STREAM.INFO.OBJ_muster")["state"]["messages"], 0)
        self.mesh.nats.kill()
        shutil.rmtree(self.folder / "nats0")
        self.mesh.nats.restart()
        self.addCleanup(Supervisor(self.mesh.nats).stop)
        self.assert_ends_exactly_once()


class LossBesideOthersTest(FaultTest):
    """A batch loses its queue in mid-batch, and is never alone in the queue afterwards."""

    def submit_for_nobody(self):
        """Submits a batch of a handler version that no processor has: its items wait for good."""
        other = self.retail_rows((3, "0.1", "7", "France"))
        done = self.ask("batch", "submit", "billing", "--input", other, "--request-id", "waits",
                        "--handler-version", "gone", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["batch"]

    def test_it_gets_its_items_again_although_others_wait_there(self):
        nats = wire(self.mesh)
        self.addCleanup(nats.close)
        nats.api(f"STREAM.DELETE.{INPUT}")
        waits = self.submit_for_nobody()
        self.await_batch(waits, lambda batch: batch["state"] == "sealed")
        self.gate.open()
        out, errors = self.submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(self.submission.returncode, 0, errors)
        self.assert_exact(self.data, ROWS, json.loads(out))
        self.assertEqual(self.answer("batch", "get", waits)["items_counted"], 0)

    def test_it_gets_its_items_again_behind_a_result_that_stays_at_the_head(self):
        nats = wire(self.mesh)
        self.addCleanup(nats.close)
        nats.request(OUTPUT_SUBJECT, RESULT_OF_A_NEWER_FORM)
        nats.api(f"STREAM.DELETE.{INPUT}")
        self.gate.open()
        out, errors = self.submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(self.submission.returncode, 0, errors)
        self.assert_exact(self.data, ROWS, json.loads(out))
        self.assertEqual(nats.message(OUTPUT, nats.sequences(OUTPUT)[0])[1], RESULT_OF_A_NEWER_FORM)


class NumberTwiceTest(MeshTest):
    """The server loses its last writes, among them that an initiator has reserved numbers: another one
    reserves them again, while the first has them still in hand."""

    def start_mesh(self):
        super().start_mesh()
        self.other_server = free_address()
        self.other = self.mesh.start_role("initiator", self.other_server, data="other")
        self.other.await_ready()
        self.gate = Gate(self.folder / "gate")
        self.addCleanup(self.gate.open)
        self.apply_billing(self.write("gated.py", GATED), self.gate.path)

    def submit_to_other(self, data, request_id):
        return self.muster(*self.submit_arguments("billing", data, request_id, self.other_server))

    def batches_of_other(self):
        done = self.muster("batch", "list", "--server", self.other_server, "-o", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def reserve_and_forget(self):
        """Has the other initiator reserve numbers, which the server then forgets, as in a power cut. It
        ends the first initiator, too."""
        small = self.retail_rows((3, "0.1", "7", "France"))
        self.submit("billing", small, "first")
        self.mesh.nats.freeze()
        shutil.copytree(self.folder / "nats0", self.folder / "before")
        self.mesh.nats.thaw()
        done = self.submit_to_other(small, "second")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.mesh.initiator.kill()
        self.mesh.nats.kill()
        shutil.rmtree(self.folder / "nats0")
        shutil.move(self.folder / "before", self.folder / "nats0")
        self.mesh.nats.restart()
        self.addCleanup(Supervisor(self.mesh.nats).stop)
        self.mesh.initiator.restart()
        return json.loads(done.stdout)["batch"]

    def test_the_second_owner_is_refused_and_both_count_by_themselves(self):
        last = self.reserve_and_forget()
        data, late = retail_input(ROWS), retail_input(2 * ROWS)
        owner = self.start_submit("billing", data, request_id="owner")
        number = last + 1
        self.await_batch(number, lambda batch: batch["items_counted"] == FREE_ITEMS)

        refused = self.submit_to_other(late, "late")
        self.assertEqual(refused.returncode, 1, refused.stdout + refused.stderr)
        self.assertIn("submit it again", refused.stderr)
        [ended] = [b for b in self.batches_of_other() if b["state"] == "cancelled"]
        self.assertEqual(ended["batch"], number)

        self.gate.open()
        out, errors = owner.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(owner.returncode, 0, errors)
        self.assert_exact(data, ROWS, json.loads(out))
        again = self.submit_to_other(late, "late")
        self.assertEqual(again.returncode, 0, again.stderr)
        again = json.loads(again.stdout)
        self.assertNotEqual(again["batch"], number)
        self.assertEqual(again["aggregated"], 2 * ROWS)
        self.assert_report_is_the_direct_sum(late, again["batch"])
        self.assert_report_is_the_direct_sum(data, number)


class ShortGraceMesh(Mesh):
    """Results without a ledger wait for seconds."""

    def start_role(self, role, address=None, *more, data=None):
        if role == "controller":
            more = ("--unknown-batch-grace", "3s", *more)
        return super().start_role(role, address, *more, data=data)


class LostLedgerTest(FaultTest):
    """An initiator loses its directory while results of its batch wait, and another batch of the job
    loses its queue meanwhile."""

    def make_mesh(self):
        return ShortGraceMesh(self.folder, self.nats_server, self.nats_servers)

    def await_depths(self, reached):
        """Waits until `reached` is true of the messages in the input and in the output queue."""
        for _ in looks(READY_SECONDS):
            depths = {queue["queue"]: queue["ready"] + queue["in_flight"]
                      for queue in self.answer("queue", "list")}
            if reached(depths["local/billing-in-0"], depths["local/billing-out-0"]):
                return
        self.fail(f"the queues did not come that far: {depths}")

    def lose_ledger(self):
        self.mesh.controller.kill()
        self.gate.open()
        self.await_depths(lambda items, results: items == 0 and results > 0)
        self.mesh.initiator.kill()
        self.submission.kill()
        shutil.rmtree(self.folder / "initiator")
        self.mesh.initiator.restart()

    def submit_and_lose_items(self, data):
        """Submits a batch whose items are purged before a processor has one of them."""
        for processor in self.mesh.processors:
            processor.kill()
        self.mesh.controller.restart()
        submission = self.start_submit("billing", data, request_id="april")
        self.await_depths(lambda items, results: items == 1)
        nats = wire(self.mesh)
        self.addCleanup(nats.close)
        nats.api(f"STREAM.PURGE.{INPUT}")
        for processor in self.mesh.processors:
            processor.restart()
        return submission

    def test_its_results_become_poison_and_hold_up_no_other_batch(self):
        self.lose_ledger()
        other = self.retail_rows((3, "0.1", "7", "France"))
        submission = self.submit_and_lose_items(other)
        out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, 0, errors)
        self.assert_exact(other, 1, json.loads(out))

        self.await_depths(lambda items, results: items + results == 0)
        causes = {poison["cause"] for poison in self.answer("queue", "poison", "local/billing-out-0")}
        self.assertEqual(causes, {"no initiator has had the ledger of batch 1 for 3s"})
        doctor = self.ask("doctor").stdout
        self.assertIn("local/billing-out-0", doctor)
        self.assertIn("no initiator has had the ledger of batch 1", doctor)
        lost = self.ask("batch", "get", 1)
        self.assertEqual(lost.returncode, 1, lost.stdout)
        self.assertIn(f"the report has {FREE_ITEMS * ROWS_PER_ITEM} transactions of it", lost.stderr)


class SetBackTest(FaultTest):
    """The server's store is set back to a copy of before, as from a snapshot of its volume, while the
    services go on."""

    def setUp(self):
        self.copies = 0
        super().setUp()

    def apply_billing(self, *arguments, **options):
        super().apply_billing(*arguments, **options)
        self.queueless = self.copy()  # before the batch

    def copy(self):
        self.copies += 1
        copy = self.folder / f"copy{self.copies}"
        self.mesh.nats.freeze()
        shutil.copytree(self.folder / "nats0", copy)
        self.mesh.nats.thaw()
        return copy

    def set_back(self, copy):
        self.mesh.nats.kill()
        shutil.rmtree(self.folder / "nats0")
        shutil.copytree(copy, self.folder / "nats0")
        self.mesh.nats.restart()
        self.addCleanup(Supervisor(self.mesh.nats).stop)

    def assert_nothing_is_left(self):
        for _ in looks(READY_SECONDS):
            queues = self.answer("queue", "list")
            if all(queue["ready"] + queue["in_flight"] == 0 for queue in queues):
                self.assertEqual([queue["poison"] for queue in queues], [0] * len(queues))
                return
        self.fail(f"something stays in the queues: {queues}")

    def assert_a_later_batch_is_exact(self):
        other = self.retail_rows((3, "0.1", "7", "France"))
        later = self.submit("billing", other, "april")
        self.assert_exact(other, 1, later)
        self.assertNotEqual(later["batch"], 1)

    def test_items_that_were_counted_and_come_back_count_once(self):
        waiting = self.copy()
        self.assert_ends_exactly_once()
        self.set_back(waiting)
        self.assert_a_later_batch_is_exact()
        self.assert_nothing_is_left()
        self.assert_report_is_the_direct_sum(self.data, 1)
        self.assert_receipt_is_complete(1, ROWS)

    def test_items_that_are_missing_are_put_again(self):
        self.set_back(self.queueless)
        self.assert_ends_exactly_once()
        self.assert_a_later_batch_is_exact()
        self.assert_nothing_is_left()

    def test_items_are_put_again_where_others_have_taken_their_places(self):
        self.set_back(self.queueless)
        others = retail_input(2 * ROWS)
        other = self.start_submit("billing", others, request_id="april")
        self.assert_ends_exactly_once_beside(other, others)
        self.assert_nothing_is_left()

    def test_an_input_queue_that_is_restored_from_a_backup_of_its_stream_counts_once(self):
        """Newer servers restore no deduplication window, and begin a new life of the stream."""
        nats = wire(self.mesh)
        self.addCleanup(nats.close)
        backup = take_stream(self.mesh.nats_addresses[0], INPUT)
        services = [*self.mesh.processors, self.mesh.controller, self.mesh.initiator]
        for service in services:  # one of them would make the queue anew
            service.freeze()
        nats.api(f"STREAM.DELETE.{INPUT}")
        restore_stream(self.mesh.nats_addresses[0], INPUT, backup)
        for service in services:
            service.thaw()
        self.assert_ends_exactly_once()
        self.assert_a_later_batch_is_exact()
        self.assert_nothing_is_left()

    def assert_ends_exactly_once_beside(self, other, others):
        self.gate.open()
        for submission, data, rows in ((self.submission, self.data, ROWS), (other, others, 2 * ROWS)):
            out, errors = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
            self.assertEqual(submission.returncode, 0, errors)
            self.assert_exact(data, rows, json.loads(out))


def on_other_servers(*cases):
    """Returns the same cases for each further server."""
    return {f"{case.__name__}OnServer{number}": type(case.__name__, (case,), {"nats_server": server})
            for number, server in enumerate(NATS_SERVERS[1:], 1) for case in cases}


globals().update(on_other_servers(OtherwiseAtStartTest, OtherwiseMeanwhileTest, LostStoreTest,
                                  LossBesideOthersTest, LostLedgerTest, NumberTwiceTest, SetBackTest))

if __name__ == "__main__":
    harness.main()
