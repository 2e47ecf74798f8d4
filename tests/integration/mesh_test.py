# SPDX-License-Identifier: Apache-2.0
"""The services and the command line together, and their behavior in deaths and outages.

The programs, the NATS server and their connections are real. MUSTER_NATS_SERVERS names the servers to
test against, separated by colons; MUSTER_LONG_OUTAGE=1 adds an outage of a minute.
"""

import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import unittest

import harness
from harness import ROOT, looks, retail_input
from mesh import NATS_SERVERS, READY_SECONDS, Bottleneck, Cut, Log, Mesh, free_address
from mesh_case import FREE_ITEMS, ROWS, ROWS_PER_ITEM, FaultTest, MeshTest

# A client that follows a batch learns within this time why it waits: an initiator checks the queues
# of incomplete batches every 2 s, and gives up on an answer after 10 s.
OUTAGE_IS_TOLD_SECONDS = 30


class WalkTest(MeshTest):
    def submit_when_there_is_a_handler(self, job, data):
        """Submits until the initiator knows the handler from the processors' next heartbeats."""
        for _ in looks(READY_SECONDS):
            done = self.muster(*self.submit_arguments(job, data))
            if "no processor is there" not in done.stderr:
                break
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_batch_goes_all_the_way_and_every_service_ends_in_order(self):
        data = retail_input(20000)
        self.answer("job", "apply", harness.RETAIL_JOB)
        self.assert_exact(data, 20000, self.submit_when_there_is_a_handler("retail", data))
        for service in [*self.mesh.processors, self.mesh.controller, self.mesh.initiator]:
            self.assertEqual(service.stop(), 0)

    def test_a_job_that_nobody_applied_is_an_error_that_names_it(self):
        done = self.muster(*self.submit_arguments("retail", retail_input(5000)))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("retail", done.stderr)
        self.assertEqual(self.answer("batch", "list"), [])


class PowerTest(MeshTest):
    """The operator declares that the NATS server syncs before it acknowledges."""

    ack_survives = "power"

    def make_mesh(self):
        mesh = super().make_mesh()
        mesh.role_options = ["--ack-survives", "power"]
        return mesh

    def test_a_receipt_says_what_acknowledgements_are_said_to_survive(self):
        data = retail_input(ROWS)
        self.apply_billing()
        self.assert_exact(data, ROWS, self.submit("billing", data))


class UploadTest(MeshTest):
    def test_an_upload_that_was_cut_off_goes_on_where_it_was(self):
        data = retail_input(60000)
        size = data.stat().st_size
        self.apply_billing()
        narrow = Bottleneck(self.mesh.server, limit=3 << 20)
        self.addCleanup(narrow.close)
        cut = self.start_submit("billing", data, narrow.address)
        self.assertTrue(narrow.full.wait(READY_SECONDS))
        cut.kill()
        narrow.close()
        [batch] = self.answer("batch", "list")
        self.assertEqual(batch["state"], "open")

        wide = Bottleneck(self.mesh.server, limit=1 << 40)
        self.addCleanup(wide.close)
        resumed = self.start_submit("billing", data, wide.address)
        out, errors = resumed.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(resumed.returncode, 0, errors)
        result = json.loads(out)
        self.assertEqual(result["batch"], batch["batch"])
        # A piece of at least a MiB was durable; the output of the watch passes here, too.
        self.assertLess(wide.passed, size - (1 << 19))
        self.assert_exact(data, 60000, result)


    def test_an_upload_outlives_its_initiator_and_says_meanwhile_what_is_wrong(self):
        data = retail_input(60000)
        size = data.stat().st_size
        self.apply_billing()
        narrow = Cut(self.mesh.server, limit=3 << 20, at_once=False)
        self.addCleanup(narrow.close)
        submission = self.start_submit("billing", data, narrow.address)
        said = Log()
        threading.Thread(target=said.read, args=(submission.stderr,)).start()
        submission.stderr = None  # is read already
        self.assertTrue(narrow.full.wait(READY_SECONDS))
        self.await_arrived(2 << 20)
        self.mesh.initiator.kill()
        narrow.cut()
        self.assertTrue(
            said.await_line("the upload goes on when it answers", READY_SECONDS, 1), said.lines)
        self.mesh.initiator.restart()
        out, _ = submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(submission.returncode, 0, said.lines)
        self.assertLess(narrow.passed, size - (2 << 20) + (1 << 19), "what was there went again")
        self.assert_exact(data, 60000, json.loads(out))
        self.assertEqual(len(self.answer("batch", "list")), 1)

    def await_arrived(self, size):
        """Waits until the initiator has stored `size` bytes of the one upload."""
        for _ in looks(READY_SECONDS):
            arriving = list((self.mesh.folder / "initiator").rglob("*.part"))
            if sum(path.stat().st_size for path in arriving) >= size:
                return
        self.fail(f"not there: {arriving}")


# Bills like the retail job, but gives one item up as long as the file of its argument is there.
MOODY = f'''
import json, os, sys
sys.path.insert(0, {str(ROOT / "examples/retail")!r})
import bill

def sound(lines):
    for line in lines:
        item = json.loads(line)["item"]  # "BATCH/ITEM:ATTEMPT"
        if item.split(":")[0].endswith("/3") and os.path.exists(sys.argv[1]):
            print(json.dumps({{"item": item, "outcome": "dead", "why": "moody"}}), flush=True)
        else:
            yield line

sys.stdin = sound(sys.stdin)
bill.main()
'''


class SeveralInitiatorsTest(MeshTest):
    """A balancer may send a retry, or an operator's command, to another initiator."""

    def start_mesh(self):
        super().start_mesh()
        self.other_server = free_address()
        self.other = self.mesh.start_role("initiator", self.other_server, data="other")
        self.other.await_ready()
        self.apply_billing()
        self.data = retail_input(ROWS)

    def submit_to_other(self):
        """Returns the process and the log of its errors."""
        process = self.start_submit("billing", self.data, self.other_server)
        log = Log()
        threading.Thread(target=log.read, args=(process.stderr,)).start()
        process.stderr = None  # is read already
        return process, log

    def assert_refused(self, process, log):
        process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 1, log.lines)
        self.assertTrue(log.await_line("belongs to batch 1 of initiator", READY_SECONDS, 1),
                        log.lines)
        self.assertIn(self.mesh.server, "".join(log.lines))
        self.assertEqual(json.loads(self.muster(
            "batch", "list", "--server", self.other_server, "-o", "json").stdout), [])

    def test_a_request_id_makes_one_batch_whichever_initiator_it_reaches(self):
        self.assert_exact(self.data, ROWS, self.submit("billing", self.data))
        self.assert_refused(*self.submit_to_other())

        self.mesh.initiator.kill()
        process, log = self.submit_to_other()
        self.assertTrue(log.await_line("which cannot be asked", READY_SECONDS, 1), log.lines)
        self.mesh.initiator.restart()
        self.assert_refused(process, log)
        self.assertEqual(len(self.answer("batch", "list")), 1)

    def test_the_request_id_of_a_cancelled_batch_begins_one_on_another_initiator(self):
        for processor in self.mesh.processors:
            processor.kill()
        submitted = self.start_submit("billing", self.data)
        self.await_batch(1, lambda batch: batch["state"] == "sealed")
        self.answer("batch", "cancel", 1)
        submitted.communicate(timeout=harness.TIMEOUT_SECONDS)
        for processor in self.mesh.processors:
            processor.restart()
        process, log = self.submit_to_other()
        out, _ = process.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 0, log.lines)
        result = json.loads(out)
        self.assertEqual(result["transactions"], ROWS)
        self.assertNotEqual(result["batch"], 1)
        self.assert_report_is_the_direct_sum(self.data, result["batch"])

    def test_a_redrive_by_one_initiator_opens_the_batch_of_another(self):
        broken = self.folder / "broken"
        broken.touch()
        self.apply_billing(self.write("moody.py", MOODY), broken, name="moody")
        done = self.muster(*self.submit_arguments("moody", self.data))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(json.loads(done.stdout)["dead_lettered"], ROWS_PER_ITEM)
        broken.unlink()
        redriven = self.muster("queue", "redrive", "local/moody-in-0", "--server", self.other_server)
        self.assertEqual(redriven.returncode, 0, redriven.stderr)
        self.assertIn("batch 1 is open again", redriven.stdout + redriven.stderr)
        self.await_batch(1, lambda batch: batch["state"] == "complete" and batch["aggregated"] == ROWS)
        self.assert_report_is_the_direct_sum(self.data, 1)


class KillTest(FaultTest):
    def test_a_killed_initiator_goes_on_with_its_batches(self):
        self.mesh.initiator.kill()
        self.gate.open()
        self.mesh.initiator.restart()
        self.assert_ends_exactly_once()

    def test_what_a_killed_processor_had_in_hand_goes_to_another(self):
        self.mesh.processors[0].kill()
        self.outlast_leases()
        self.assert_ends_exactly_once()

    def test_processors_that_were_all_killed_go_on_when_they_are_back(self):
        for processor in self.mesh.processors:
            processor.kill()
        self.outlast_leases()
        for processor in self.mesh.processors:
            processor.restart()
        self.assert_ends_exactly_once()

    def test_results_wait_for_a_killed_controller(self):
        self.mesh.controller.kill()
        self.gate.open()
        self.mesh.controller.restart()
        self.assert_ends_exactly_once()

    def test_a_killed_nats_server_keeps_what_it_acknowledged(self):
        self.mesh.nats.kill()
        self.mesh.nats.restart()
        self.assert_ends_exactly_once()

    def test_everything_killed_at_once_goes_on(self):
        for program in self.mesh.programs:
            program.signal(signal.SIGKILL)
        for program in self.mesh.programs:
            program.wait()
        self.outlast_leases()
        for program in self.mesh.programs:
            program.start()
        for program in self.mesh.programs:
            program.await_ready()
        self.assert_ends_exactly_once()


class LongLeaseMesh(Mesh):
    """Leases that outlast any wait of a test."""

    LEASE_SECONDS = 3600


class LongLeaseTest(FaultTest):
    def make_mesh(self):
        return LongLeaseMesh(self.folder, self.nats_server, self.nats_servers)

    def apply_billing(self, *program, **how):
        super().apply_billing(*program, visibility="1h", **how)

    def test_what_a_killed_processor_had_in_hand_goes_to_another_before_its_lease_ends(self):
        self.await_busy(2)
        self.mesh.processors[0].kill()
        self.assert_ends_exactly_once()
        said = [line for program in self.mesh.programs for line in program.log.lines
                if "what a dead instance held is given back" in line]
        self.assertTrue(said)


class CancelTest(FaultTest):
    def test_a_cancelled_batch_has_what_runs_stop_and_leaves_nothing_behind(self):
        cancelled = self.answer("batch", "cancel", 1, "--reason", "by mistake")
        self.assertEqual((cancelled["processors"], cancelled["acknowledged"]), (2, 2))
        _, errors = self.submission.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(self.submission.returncode, 1, errors)
        # The gate is still shut: the handlers that waited there were stopped.
        for _ in looks(READY_SECONDS):
            queues = self.answer("queue", "list")
            if not any(queue["ready"] + queue["in_flight"] for queue in queues):
                break
        else:
            self.fail(f"still there: {queues}")
        [batch] = self.answer("batch", "list")
        self.assertEqual((batch["state"], batch["items_counted"]), ("cancelled", FREE_ITEMS))
        self.assert_receipt_is_cancelled("by mistake")

    def assert_receipt_is_cancelled(self, reason):
        done = self.ask("batch", "receipt", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("results of items in progress may still come", done.stderr)
        text, _, checksum = done.stdout.rpartition("checksum ")
        counted = FREE_ITEMS * ROWS_PER_ITEM
        for line in ("state cancelled", f"cancel_reason {reason}", "counts so_far",
                     f"transactions {ROWS}", f"aggregated {counted}", f"uncounted {ROWS - counted}"):
            self.assertIn(line, text.splitlines())
        self.assertEqual(hashlib.sha256(text.encode()).hexdigest(), checksum.strip())
        receipt = self.answer("batch", "receipt", 1)
        self.assertEqual((receipt["state"], receipt["cancel_reason"]), ("cancelled", reason))
        self.assertEqual([int(items) for items in receipt["items_by_version"].values()],
                         [FREE_ITEMS])


class RedriveTest(MeshTest):
    """An item that its handler gives up, and a controller that is away when it is redriven."""

    GIVES_UP = """
import json, sys
for line in sys.stdin:
    answer = {"item": json.loads(line)["item"], "outcome": "dead", "why": "no luck"}
    print(json.dumps(answer), flush=True)
"""

    def test_a_redrive_that_fails_in_the_middle_leaves_no_batch_open(self):
        self.apply_billing(self.write("gives_up.py", self.GIVES_UP))
        done = self.muster(*self.submit_arguments(
            "billing", self.retail_rows((3, "0.1", "7", "France"))))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.mesh.controller.kill()
        # The ledger opens the batch; the report does not answer.
        redrive = self.ask("queue", "redrive", "local/billing-in-0")
        self.assertEqual(redrive.returncode, 5, redrive.stdout + redrive.stderr)
        self.mesh.controller.restart()
        self.await_batch(1, lambda batch: batch["state"] == "complete" and "problem" not in batch)
        [poison] = self.answer("queue", "poison", "local/billing-in-0")
        self.assertEqual(poison["cause"], "no luck")
        redriven = self.answer("queue", "redrive", "local/billing-in-0")
        self.assertEqual(redriven["batches"], [1])
        # Its item is given up again.
        self.await_batch(1, lambda batch: batch["state"] == "complete")


class MissingVersionTest(MeshTest):
    """Items of a handler version that no processor has stand before the items of another batch."""

    ITEMS = 2000 if harness.WITH_SMALL_COUNTS else 25_000  # of one line each

    def test_a_batch_flows_behind_thousands_of_items_that_no_processor_fits(self):
        self.apply_billing(item_lines=1)
        bound = self.ask("batch", "submit", "billing", "--input", retail_input(self.ITEMS),
                         "--request-id", "waits", "--handler-version", "gone", "-o", "json")
        self.assertEqual(bound.returncode, 0, bound.stderr)
        waits = json.loads(bound.stdout)["batch"]
        self.await_put()
        rows = self.retail_rows(*[(1, "0.1", customer, "France") for customer in range(5)])
        self.assert_exact(rows, 5, self.submit("billing", rows))
        waiting = self.answer("batch", "get", waits)
        self.assertEqual((waiting["state"], waiting["items_counted"]), ("sealed", 0))

    def await_put(self):
        for _ in looks(READY_SECONDS):
            [queue] = [q for q in self.answer("queue", "list") if q["queue"].endswith("-in-0")]
            if queue["total_in"] == self.ITEMS:
                return
        self.fail(f"not all are put: {queue}")


class InterruptTest(FaultTest):
    def test_who_is_interrupted_waits_no_more_and_the_batch_goes_on(self):
        watch = subprocess.Popen([harness.MUSTER, "batch", "watch", "1", "-q", "--server",
                                  self.mesh.server], stderr=subprocess.PIPE, text=True)
        self.addCleanup(watch.communicate)
        self.addCleanup(watch.kill)
        self.await_signal_handler(watch)
        for process in (self.submission, watch):
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=READY_SECONDS)
            self.assertEqual((process.returncode, errors),
                             (130, "muster: stopped waiting; batch 1 goes on, and "
                                   "`muster batch watch 1` shows it\n"))
        self.gate.open()
        self.assert_exact(self.data, ROWS, self.submit("billing", self.data))

    def await_signal_handler(self, process):
        """Waits until the process handles the signal: before that it would die of it."""
        status = pathlib.Path(f"/proc/{process.pid}/status")
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            # StopSignals blocks the signals that its own thread takes.
            masks = {name: int(value, 16) for name, value in re.findall(
                r"^(SigBlk|SigCgt):\s*(\w+)$", status.read_text(), re.MULTILINE)}
            if (masks["SigBlk"] | masks["SigCgt"]) & 1 << (signal.SIGINT - 1):
                return
        self.fail("it takes no signals")


class StallTest(FaultTest):
    def test_a_processor_that_slept_beyond_its_lease_counts_nothing_twice_and_knows_it(self):
        sleeper, awake = self.mesh.processors
        self.await_busy(2)  # so that the frozen processor has leases to lose
        sleeper.freeze()
        self.outlast_leases()
        self.assert_ends_exactly_once()
        # Now the frozen processor has to work, after it finishes its old items.
        awake.stop()
        sleeper.thaw()
        other = self.retail_rows((3, "0.1", "7", "France"))
        self.assert_exact(other, 1, self.submit("billing", other, "april"))
        self.assert_report_is_the_direct_sum(self.data, 1)
        self.await_lost_leases()

    def await_lost_leases(self):
        """Waits until the one remaining processor reports a lost lease."""
        for _ in looks(READY_SECONDS):
            # A processor that has left does not answer, so its lost leases are unknown.
            workers = self.answer("worker", "list", "--job", "billing")
            [told] = [worker for worker in workers if worker["leases_lost"] is not None]
            if told["leases_lost"] > 0:
                return
        self.fail(f"no lease was lost: {workers}")

    def await_same_reason(self, said):
        """What `batch get` says, once the submitter has said it, too: processors and controllers are missed one after the other."""
        end = time.monotonic() + OUTAGE_IS_TOLD_SECONDS
        while True:
            waiting = self.answer("batch", "get", 1)
            if said.await_line(f"batch 1 waits: {waiting.get('problem')}\n", 1, 1):
                return waiting
            self.assertLess(time.monotonic(), end, "".join(said.lines))

    def outage(self, seconds):
        said = Log()
        threading.Thread(target=said.read, args=(self.submission.stderr,)).start()
        self.submission.stderr = None  # is read already
        self.mesh.nats.kill()
        self.gate.open()
        self.assertTrue(said.await_line("muster: batch 1 waits: ", OUTAGE_IS_TOLD_SECONDS, 1),
                        "".join(said.lines))
        self.assertEqual(self.await_same_reason(said)["state"], "sealed")
        [row] = self.ask("batch", "list").stdout.splitlines()[-1:]
        self.assertIn("sealed, waits", row)
        time.sleep(seconds)  # this is the outage itself
        self.mesh.nats.restart()
        self.assert_ends_exactly_once()
        self.assertNotIn("problem", self.answer("batch", "get", 1))

    def test_an_outage_of_the_nats_server_of_some_seconds_costs_those_seconds(self):
        self.outage(5)

    @unittest.skipUnless(os.environ.get("MUSTER_LONG_OUTAGE"), "takes a minute")
    def test_an_outage_of_the_nats_server_of_a_minute_costs_a_minute(self):
        self.outage(60)


class ClusterTest(MeshTest):
    nats_server = NATS_SERVERS[-1]
    nats_servers = 3

    def test_a_cluster_goes_on_without_one_of_its_three_servers(self):
        data = retail_input(ROWS)
        self.apply_billing()
        self.assert_exact(data, ROWS, self.submit("billing", data, "with all"))
        self.mesh.nats.kill()
        self.assert_exact(data, ROWS, self.submit("billing", data, "without one"))
        self.assertEqual(len(self.answer("batch", "list")), 2)


class BeginTest(MeshTest):
    """Services without their requirements, and clients that do not trust them."""

    def start_mesh(self):
        pass  # each test starts the programs that it needs

    def certificate(self, name):
        """Returns (certificate, key) of a server on loopback that signed its own certificate."""
        files = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
             "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
        return files

    def test_a_service_waits_for_a_nats_server_that_is_not_there_yet(self):
        initiator = self.mesh.start_role("initiator", self.mesh.server)
        initiator.await_line("what is needed does not answer")
        early = self.ask("batch", "list")
        self.assertEqual(early.returncode, 5, early.stderr)
        self.assertIn("waits for the queues", early.stderr)
        self.mesh.start_nats().await_ready()
        initiator.await_ready()
        self.assertEqual(self.answer("batch", "list"), [])

    def test_a_service_that_waits_can_be_stopped(self):
        processor = self.mesh.start_role("processor")
        processor.await_line("what is needed does not answer")
        self.assertEqual(processor.stop(), 0)

    def test_a_client_sends_nothing_to_a_server_whose_certificate_it_does_not_trust(self):
        certificate, key = self.certificate("initiator")
        other, _ = self.certificate("other")
        self.mesh.start_nats().await_ready()
        self.mesh.start_role("initiator", self.mesh.server, "--tls-cert", certificate,
                             "--tls-key", key).await_ready()
        self.assertEqual(self.answer("job", "list", "--tls-roots", certificate), [])
        for mistrust, why in ((["--tls-roots", other], "certificate verify failed"), ([], "")):
            refused = self.ask("job", "list", *mistrust)
            self.assertEqual((refused.returncode, refused.stdout), (5, ""))
            said = refused.stderr[refused.stderr.index("muster: "):]
            self.assertIn(self.mesh.server, said)
            self.assertIn(why, said)


if __name__ == "__main__":
    harness.main()
