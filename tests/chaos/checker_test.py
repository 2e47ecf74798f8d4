# SPDX-License-Identifier: Apache-2.0
"""The checker finds each violation that is planted in a sound history."""

import copy
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import unittest

import checker
import history as histories

ITEMS = [["a 1", "a 2", "b 3", "reject 1", "b 4"], ["a 5", "doomed 1"], ["b 7"]]
WANTED = {"batch": 2, "request": "unwanted", "items": [["a 1"], ["b 2"]]}


def receipt(batch, figures):
    text = f"muster-receipt 1\nbatch {batch}\n" + "".join(f"{n} {v}\n" for n, v in figures.items())
    return text, hashlib.sha256(text.encode()).hexdigest()


TEXT, CHECKSUM = receipt(1, {"items": 3, "transactions": 8, "aggregated": 5, "rejected": 1,
                             "dead_lettered": 2, "items_dead": 1})
# Batch 1 is complete with a dead item; batch 2 was cancelled with one of its two items counted.
SOUND = [
    {"what": "begin_threads", "threads": {"controller": 30}},
    {"what": "content", "request": "march", "kind": "doomed", "items": ITEMS},
    {"what": "content", "request": "unwanted", "kind": "held", "items": WANTED["items"]},
    {"what": "acknowledged", "request": "march", "batch": 1},
    {"what": "acknowledged", "request": "march", "batch": 1},
    {"what": "acknowledged", "request": "unwanted", "batch": 2},
    {"what": "cancel", "batch": 2},
    {"what": "cancelled", "batch": 2},
    {"what": "seen", "batch": 1, "request": "march", "state": "sealed"},
    {"what": "seen", "batch": 2, "request": "unwanted", "state": "cancelled"},
    {"what": "attempted", "batch": 1, "item": 0, "attempt": 1},
    {"what": "attempted", "batch": 1, "item": 1, "attempt": 1},
    {"what": "attempted", "batch": 1, "item": 2, "attempt": 1},
    {"what": "attempted", "batch": 2, "item": 0, "attempt": 1},
    {"what": "committed", "batch": 1, "items": 1, "dead": 0, "aggregated": 4},
    {"what": "committed", "batch": 1, "items": 2, "dead": 1, "aggregated": 5},
    {"what": "receipt", "batch": 1, "revision": 1, "checksum": CHECKSUM},
    {"what": "seen", "batch": 1, "request": "march", "state": "complete"},
    {"what": "rest", "seconds": 3, "waits": "", "nudges": 0},
    {"what": "listed", "batches": [1, 2]},
    {"what": "end_batches", "batches": [
        {"batch": 1, "request_id": "march", "state": "complete"},
        {"batch": 2, "request_id": "unwanted", "state": "cancelled"}]},
    {"what": "end_queues", "queues": [
        {"queue": "local/chaos-in-0", "ready": 0, "in_flight": 0, "delayed": 0, "poison": 1}]},
    {"what": "end_poison", "items": [[1, 1]]},
    {"what": "end_streams", "streams": {"MUSTER_local_chaos-in-0": 0, "KV_muster": 4}},
    {"what": "end_blobs", "items": []},
    {"what": "end_threads", "threads": {"controller": 31}},
    {"what": "end_exits", "exits": {"controller": 0, "nats0": 1}},
    {"what": "end_items", "items": [[1, 0, 1, 5, 4, 1], [1, 1, 2, 2, 0, 0], [1, 2, 1, 1, 1, 0],
                                    [2, 0, 1, 1, 1, 0]]},
    {"what": "end_totals", "totals": [[1, 2, 1, 8, 5, 1, 2, 0], [2, 1, 0, 1, 1, 0, 0, 0]]},
    {"what": "end_receipts", "receipts": [[1, 1, TEXT + f"checksum {CHECKSUM}\n", CHECKSUM]]},
    {"what": "end_rows", "rows": [[1, "a", 3], [1, "b", 14], [2, "a", 1]]},
    {"what": "end_verified", "batch": 1, "code": 0, "said": ""},
    {"what": "end_left", "left": []},
]


class CheckerTest(unittest.TestCase):
    def setUp(self):
        self.events = copy.deepcopy(SOUND)
        for at, event in enumerate(self.events):
            event["at"] = float(at)
            if event["what"] == "seen":
                event["until"] = at + 0.4

    def only(self, what):
        [event] = [event for event in self.events if event["what"] == what]
        return event

    def first(self, what):
        return next(event for event in self.events if event["what"] == what)

    def add(self, what, at=None, **fields):
        """Adds an event at the end, or `at` an earlier time."""
        at = float(len(SOUND)) if at is None else at
        if what == "seen":
            fields.setdefault("until", at)
        self.events.append({"at": at, "what": what, **fields})
        self.events.sort(key=lambda event: event["at"])

    def assert_found(self, rule, *words):
        found = [said for said in checker.violations(self.events) if said.startswith(f"{rule}: ")]
        self.assertTrue(any(all(word in said for word in words) for said in found),
                        f"{words} is not in {checker.violations(self.events)}")

    def end_of(self, batch):
        [found] = [b for b in self.only("end_batches")["batches"] if b["batch"] == batch]
        return found

    def test_a_sound_history_has_no_violation(self):
        self.assertEqual(checker.violations(self.events), [])

    def test_a_history_without_an_end(self):
        self.events = self.events[:6]
        self.assert_found("came_to_rest", "not brought to its end")

    def test_a_mesh_that_does_not_come_to_rest(self):
        self.only("rest")["waits"] = "batch 1 is sealed"
        self.assert_found("came_to_rest", "batch 1 is sealed")

    def test_a_program_that_ended_by_itself(self):
        self.add("ended", program="controller", code=-6, said="broken")
        self.assert_found("programs_end_only_by_faults", "controller", "-6")

    def test_a_program_whose_disk_was_full_may_end(self):
        self.add("fault", kind="full-disk", given={"program": "controller"}, edge="begin")
        self.add("ended", program="controller", code=5, said="no room")
        self.assertEqual(checker.violations(self.events), [])

    def test_a_request_that_became_two_batches(self):
        self.add("acknowledged", request="march", batch=3)
        self.assert_found("one_batch_for_each_request", "march became batches [1, 3]")

    def test_a_request_may_begin_anew_once_its_batch_is_cancelled(self):
        self.add("seen", request="unwanted", batch=1, state="sealed")
        self.assertNotIn("became", "".join(checker.violations(self.events)))

    def test_a_number_that_stands_for_two_batches(self):
        self.add("acknowledged", request="april", batch=1)
        self.assert_found("one_batch_for_each_request", "batch 1 stands for", "april")

    def test_a_job_that_is_gone(self):
        self.add("refused", request="april", said="muster: no job 'chaos'")
        self.assert_found("jobs_stay", "april", "no job 'chaos'")

    def test_an_acknowledged_batch_that_is_gone(self):
        del self.only("end_batches")["batches"][0]
        self.assert_found("acknowledged_batches_stay", "batch 1 is gone")

    def test_an_acknowledged_batch_that_a_later_list_leaves_out(self):
        self.add("listed", at=100.0, batches=[2])
        self.assert_found("acknowledged_batches_stay", "batch 1 is not in the list")

    def test_a_batch_that_is_never_done(self):
        self.end_of(1)["state"] = "sealed"
        self.assert_found("acknowledged_batches_stay", "batch 1 is sealed in the end")

    def test_a_cancelled_batch_that_goes_on(self):
        self.add("seen", batch=2, request="unwanted", state="sealed")
        self.assert_found("states_go_forward", "batch 2 was cancelled and is sealed")

    def test_a_cancelled_batch_that_is_complete_in_the_end(self):
        self.end_of(2)["state"] = "complete"
        self.assert_found("states_go_forward", "batch 2 was cancelled and is complete")

    def test_a_batch_that_nobody_cancelled(self):
        self.events = [event for event in self.events if event["what"] not in ("cancel", "cancelled")]
        self.assert_found("states_go_forward", "batch 2 is cancelled, and no client")

    def test_a_complete_batch_that_is_open_again_without_a_redrive(self):
        self.add("seen", at=17.5, batch=1, request="march", state="sealed")
        self.assert_found("states_go_forward", "batch 1 was complete and is sealed")

    def test_a_complete_batch_that_a_redrive_opens(self):
        self.add("redrive", at=17.2, queue="local/chaos-in-0")
        self.add("seen", at=17.5, batch=1, request="march", state="sealed")
        self.assertEqual(checker.violations(self.events), [])

    def test_a_redrive_that_begins_while_a_list_is_on_its_way_opens_a_batch(self):
        self.add("seen", at=17.5, until=18.5, batch=1, request="march", state="sealed")
        self.add("redrive", at=18.2, queue="local/chaos-in-0")
        self.assertEqual(checker.violations(self.events), [])

    def test_committed_counts_that_shrink(self):
        self.add("committed", batch=1, items=1, dead=1, aggregated=4)
        self.assert_found("counts_only_grow", "batch 1 had 2 items")

    def test_a_lost_item(self):
        self.only("end_items")["items"].remove([1, 2, 1, 1, 1, 0])
        self.assert_found("each_item_is_counted_once", "batch 1 is complete without items [2]")

    def test_an_item_that_was_never_submitted(self):
        self.only("end_items")["items"].append([1, 3, 1, 5, 5, 0])
        self.assert_found("each_item_is_counted_once", "items [3] beyond its 3")

    def test_an_item_with_too_few_transactions(self):
        self.only("end_items")["items"][0] = [1, 0, 1, 4, 3, 1]
        self.assert_found("each_item_is_counted_once", "item 1/0 has", "(4, 3, 1)")

    def test_a_batch_in_the_report_that_no_initiator_knows(self):
        self.only("end_items")["items"].append([9, 0, 1, 5, 5, 0])
        self.assert_found("each_item_is_counted_once", "batch 9, which no initiator knows")

    def test_an_item_that_was_added_twice(self):
        self.only("end_rows")["rows"][1] = [1, "b", 28]
        self.assert_found("rows_are_the_direct_sum", "batch 1, b: the report says 28, the sum is 14")

    def test_a_row_that_is_not_there(self):
        del self.only("end_rows")["rows"][0]
        self.assert_found("rows_are_the_direct_sum", "batch 1, a", "None", "the sum is 3")

    def test_running_totals_that_count_twice(self):
        self.only("end_totals")["totals"][0] = [1, 3, 1, 9, 6, 1, 2, 0]
        self.assert_found("totals_are_the_direct_sum", "batch 1 has totals (3, 1, 9, 6, 1, 2)")

    def test_two_results_of_an_item_that_differ(self):
        self.only("end_totals")["totals"][0][-1] = 1
        self.assert_found("totals_are_the_direct_sum", "1 results that differ")

    def test_a_count_out_of_nothing(self):
        self.events.remove({"at": 12.0, "what": "attempted", "batch": 1, "item": 2, "attempt": 1})
        self.assert_found("what_is_counted_was_attempted", "item 1/2")

    def test_an_item_that_was_charged_while_its_content_was_away(self):
        self.add("attempted", batch=1, item=0, attempt=3)
        self.add("fault", kind="hide-content", given={}, edge="begin")
        self.assert_found("absent_content_costs_no_attempt", "item 1/0", "charged 3")
        self.add("fault", kind="kill", given={}, edge="begin")
        self.assertEqual(checker.violations(self.events), [])

    def test_a_sound_item_that_was_given_up(self):
        self.only("end_items")["items"][2] = [1, 2, 2, 1, 0, 0]
        self.assert_found("only_bad_items_are_given_up", "item 1/2 is given up")

    def test_a_moody_item_is_mended_unless_a_broker_lost_its_poison(self):
        self.first("content")["items"][1][1] = "moody 1"
        self.only("end_poison")["items"].clear()
        self.assert_found("only_bad_items_are_given_up", "item 1/1 is given up")
        self.add("fault", kind="wipe", given={}, edge="begin")
        self.assertEqual(checker.violations(self.events), [])
        self.only("end_poison")["items"].append([1, 1])
        self.assert_found("only_bad_items_are_given_up", "item 1/1 is given up")

    def test_an_orphan_among_the_poison(self):
        self.only("end_poison")["items"].append([1, 0])
        self.assert_found("only_bad_items_are_given_up", "poison of items", "(1, 0)")

    def test_a_dead_item_without_its_message(self):
        self.only("end_poison")["items"].clear()
        self.assert_found("only_bad_items_are_given_up", "without a message to redrive", "(1, 1)")

    def test_a_late_copy_of_an_item_that_is_poison(self):
        self.only("end_poison")["items"].append([1, 0])
        self.assert_found("late_copies_are_dropped", "item 1/0")

    def test_a_dead_letter_whose_blob_is_gone(self):
        self.first("content")["kind"] = "large doomed"
        self.first("content")["items"][1] += ["a 1"]
        self.add("plan", plan={"shape": {"content": "inline"}})
        self.assert_found("dead_letters_keep_their_blobs", "item 1/1")

    def test_a_receipt_that_does_not_equal_the_sum(self):
        text, checksum = receipt(1, {"items": 3, "transactions": 8, "aggregated": 6, "rejected": 1,
                                     "dead_lettered": 2, "items_dead": 1})
        self.only("end_receipts")["receipts"] = [[1, 1, text, checksum]]
        self.assert_found("receipts_are_true", "aggregated 6, not 5")

    def test_a_receipt_that_was_tampered_with(self):
        self.only("end_receipts")["receipts"][0][2] = TEXT.replace("items 3", "items 4")
        self.assert_found("receipts_are_true", "does not have its checksum")

    def test_a_complete_batch_without_a_receipt(self):
        self.only("end_receipts")["receipts"].clear()
        self.assert_found("receipts_are_true", "complete batch 1 has no receipt")

    def test_a_cancelled_batch_with_a_complete_receipt(self):
        text, checksum = receipt(2, {"items": 1})
        self.only("end_receipts")["receipts"].append([2, 1, text, checksum])
        self.assert_found("receipts_are_true", "cancelled batch 2 has a receipt")

    def test_a_receipt_that_muster_cannot_verify(self):
        self.only("end_verified").update(code=1, said="rows_sha256 differs")
        self.assert_found("receipts_are_true", "rows_sha256 differs")

    def test_a_receipt_that_changed_under_its_revision(self):
        self.add("receipt", batch=1, revision=1, checksum="00")
        self.assert_found("receipts_stay", "receipt 1 revision 1 changed")

    def test_an_orphaned_message(self):
        self.only("end_queues")["queues"][0]["in_flight"] = 1
        self.assert_found("nothing_is_left", "local/chaos-in-0", "in_flight")

    def test_an_orphaned_message_that_no_count_tells_of(self):
        self.only("end_streams")["streams"]["MUSTER_local_chaos-in-0"] = 1
        self.assert_found("nothing_is_left", "MUSTER_local_chaos-in-0 still holds 1")

    def test_an_orphaned_blob(self):
        self.only("end_blobs")["items"] += [[1, 0], [1, 1]]
        self.assert_found("nothing_is_left", "a blob of item [1, 0]")
        self.assertNotIn("item [1, 1]", "".join(checker.violations(self.events)))

    def test_a_blob_that_is_no_items(self):
        self.only("end_blobs")["items"].append(None)
        self.assert_found("nothing_is_left", "a blob of item None")

    def test_an_orphaned_process(self):
        self.only("end_left")["left"].append("python3 handler.py")
        self.assert_found("nothing_is_left", "python3 handler.py")

    def test_threads_that_pile_up(self):
        self.only("end_threads")["threads"]["controller"] = 90
        self.assert_found("nothing_is_left", "controller has 90 threads")

    def test_a_program_that_does_not_stop_in_order(self):
        self.only("end_exits")["exits"]["controller"] = 130
        self.assert_found("programs_stop_in_order", "controller ended with 130")

    def test_every_rule_has_a_planted_violation(self):
        text = pathlib.Path(__file__).read_text(encoding="utf-8")
        for rule in checker.RULES:
            self.assertIn(f'assert_found("{rule.__name__}"', text)


class ProgramTest(unittest.TestCase):
    def judge(self, events):
        with tempfile.TemporaryDirectory() as folder:
            written = histories.History(pathlib.Path(folder) / "history.jsonl")
            for at, event in enumerate(events):
                written.record(at=at, **{"until": at, **event})
            written.close()
            return subprocess.run(
                [sys.executable, "-B", checker.__file__, str(written.path)], capture_output=True,
                text=True, timeout=60, check=False)

    def test_it_ends_with_0_for_a_sound_history(self):
        judged = self.judge(SOUND)
        self.assertEqual((judged.returncode, judged.stdout), (0, ""), judged.stderr)

    def test_it_prints_what_it_finds_and_ends_with_1(self):
        judged = self.judge([event for event in SOUND if event["what"] != "end_receipts"])
        self.assertEqual((judged.returncode, judged.stdout),
                         (1, "receipts_are_true: complete batch 1 has no receipt\n"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
