# SPDX-License-Identifier: Apache-2.0
"""Damage of stored data in mid-batch: `muster check` names it, `--repair` mends it, and the same run
ends with the totals of an independent sum.

    check_test.py [FLIPS [SEED]]      (bits that are changed in tables; default: 6 of each part)
"""

import base64
import contextlib
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys

import harness
from fragile import FRAGILE, GIVEN_UP, JOB, LARGE, FragileTest, flip_a_byte

SEED = random.SystemRandom().randrange(2**32)
FLIPS = 6  # of each part's tables
FOOTER_BYTES = 53  # of a table, as RocksDB writes it


class CheckTest(FragileTest):
    def die_in_mid_batch(self):
        self.assert_died(self.run_batch(failpoint="controller.before_commit"), "mid-batch")

    def die_before_any_item_is_done(self):
        """Dies after the first partition, with the large item in it, is queued, and before a worker
        begins."""
        self.assert_died(self.run_batch(failpoint="queue.after_begin"), "before any item is done")

    def damages(self):
        done = self.check("-o", "json")
        self.assertEqual(done.returncode, 6, done.stdout + done.stderr)
        return json.loads(done.stdout)["damaged"]

    def repair(self):
        done = self.check("--repair", "-o", "json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.check().returncode, 0)
        return json.loads(done.stdout)

    def assert_mended(self):
        """A repair, after which the batch ends exactly, and is the only one."""
        result = self.repair()
        done = self.run_batch()
        self.assert_exact(done, 3, [GIVEN_UP])
        checked = self.check()
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        self.assertEqual([1], self.reported_batches(), done.stdout)
        return result

    def reported_batches(self):
        with contextlib.closing(sqlite3.connect(self.data_dir / "report.db")) as report:
            return [row[0] for row in report.execute("SELECT batch FROM muster_batch")]

    def rows_of_the_report(self):
        return self.fragile("report", 1, "-o", "csv", "--data-dir", self.data_dir)

    def test_a_sound_data_directory_passes_at_any_time(self):
        self.die_in_mid_batch()
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" records, 0 damaged", done.stdout)
        self.run_batch()
        self.assertEqual(self.check("--repair").returncode, 0)
        self.assertFalse((self.data_dir / "damaged").exists())

    def test_nothing_is_checked_where_nothing_is(self):
        done = self.check("--repair")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no data in directory", done.stderr)
        self.assertFalse(self.data_dir.exists())

    def test_a_directory_that_a_run_works_with_is_left_alone(self):
        process = subprocess.Popen([FRAGILE, *self.run_arguments(self.batch_input, job=self.job)],
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            self.assertIn("begins", process.stderr.readline())
            process.send_signal(signal.SIGSTOP)
            for more in ([], ["--repair"]):
                done = self.check(*more)
                self.assertEqual(done.returncode, 5, done.stdout)
                self.assertIn(f"is used by another process, process {process.pid}", done.stderr)
        finally:
            process.kill()
            process.communicate(timeout=harness.TIMEOUT_SECONDS)

    def test_the_events_of_streams_are_read_too(self):
        """StreamCheckTest damages the records and the tables."""
        here = ["--data-dir", self.data_dir]
        self.assertEqual(self.fragile("stream", "create", "homes", "--partitions", 1, *here).returncode, 0)
        for n in (0, 2, 4):
            subprocess.run([FRAGILE, "stream", "append", "homes", *map(str, here)], check=True, text=True,
                           input=f"event {n}\nevent {n + 1}\n", stdout=subprocess.DEVNULL,
                           timeout=harness.TIMEOUT_SECONDS)
        sound = self.check()
        self.assertEqual(sound.returncode, 0, sound.stdout + sound.stderr)
        self.assertIn("8 records, 0 damaged", sound.stdout)

    def test_a_damaged_log_of_any_part_costs_what_follows_the_damage(self):
        for part in ("queue", "ledger", "sync"):
            with self.subTest(part=part):
                shutil.rmtree(self.data_dir, ignore_errors=True)
                self.die_in_mid_batch()
                log = max((self.data_dir / part).glob("*.log"))
                before = log.read_bytes()
                flip_a_byte(log, 0.3)
                damaged = log.read_bytes()
                self.assertNotEqual(before, damaged)
                self.assertEqual(self.run_batch().returncode, 6)
                [damage] = self.damages()[:1]
                self.assertEqual((damage["part"], damage["kind"]), (part, "log"))
                self.assertRegex(damage["remedy"], r"the \d+ changes before the damage; at least "
                                                   r"\d+ after it are lost")
                kept = self.assert_mended()["kept_in"]
                self.assertEqual((self.data_dir / "damaged/1" / part / log.name).read_bytes(),
                                 damaged)
                self.assertTrue(kept.endswith("damaged/1"), kept)

    def test_a_blob_that_is_damaged_is_made_again(self):
        self.die_before_any_item_is_done()
        [blob] = (self.data_dir / "blobs").glob("*.blob")
        flip_a_byte(blob, 0.5)
        damages = self.damages()
        self.assertEqual([damage["part"] for damage in damages], ["blobs", "queue"])
        self.assertIn(blob.name, damages[0]["name"])
        self.assert_mended()
        self.assertTrue((self.data_dir / "damaged/1/blobs" / blob.name).exists())

    def test_a_blob_that_is_gone_is_missed_by_its_message(self):
        self.die_before_any_item_is_done()
        for blob in (self.data_dir / "blobs").glob("*.blob"):
            blob.unlink()
        [damage] = self.damages()
        self.assertEqual((damage["part"], damage["kind"]), ("queue", "body"))
        self.assertIn("blob", damage["why"])
        self.assert_mended()
        line = (self.data_dir / "damaged/1/records.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(text)["family"] for text in line], ["state", "body"])
        self.assertTrue(base64.b64decode(json.loads(line[1])["value"]))

    def test_a_message_that_refers_to_other_content_than_the_ledger_has_is_taken_away(self):
        self.write("job.yaml", JOB.replace(", content: inline", ""))
        self.die_before_any_item_is_done()
        first = self.folder / "queue of the first"
        (self.data_dir / "queue").rename(first)
        shutil.rmtree(self.data_dir)
        other = self.folder / "other.txt"
        text = self.batch_input.read_text()
        at = text.index("noise 1")
        other.write_text(text[:at] + "noise 2" + text[at + 7:])
        self.batch_input = other
        self.die_before_any_item_is_done()
        shutil.rmtree(self.data_dir / "queue")
        first.rename(self.data_dir / "queue")
        [damage] = self.damages()
        self.assertEqual((damage["part"], damage["kind"]), ("queue", "body"))
        self.assertIn(f"1/{LARGE}: the ledger has other content for it", damage["why"])
        self.repair()
        self.assertEqual(self.run_batch().returncode, 3)

    def test_a_message_of_a_batch_that_is_over_may_miss_its_blob(self):
        """As when a damaged log lost that the message was deleted."""
        self.die_before_any_item_is_done()
        before = self.folder / "queue before"
        shutil.copytree(self.data_dir / "queue", before)
        self.assertEqual(self.run_batch().returncode, 3)
        shutil.rmtree(self.data_dir / "queue")
        before.rename(self.data_dir / "queue")
        checked = self.check()
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        done = self.fragile(*self.run_arguments(self.batch_input, "--new", job=self.job))
        self.assert_exact(done, 3, [GIVEN_UP])
        self.assertEqual(json.loads(done.stdout)["batch"], 2)
        checked = self.check()
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_a_batch_number_is_never_given_twice(self):
        self.assertEqual(self.run_batch().returncode, 3)
        shutil.rmtree(self.data_dir / "sync")
        [damage] = self.damages()
        self.assertIn("batch-numbers", damage["name"])
        self.assertFalse((self.data_dir / "sync").exists(), "a look changes nothing")
        self.assertEqual(self.run_batch().returncode, 3)  # makes an empty one
        [damage] = self.damages()
        self.assertIn("batch-numbers", damage["name"])
        self.repair()
        done = self.fragile(*self.run_arguments(self.batch_input, "--new", job=self.job))
        self.assert_exact(done, 3, [GIVEN_UP])
        self.assertEqual(json.loads(done.stdout)["batch"], 2)

    def test_a_batch_number_that_is_too_low_is_kept_when_it_is_raised(self):
        self.assertEqual(self.run_batch().returncode, 3)
        earlier = self.folder / "earlier"
        shutil.copytree(self.data_dir / "sync", earlier)
        new = self.run_arguments(self.batch_input, "--new", "--quiet", job=self.job)
        self.assertEqual(self.fragile(*new).returncode, 3)
        shutil.rmtree(self.data_dir / "sync")
        earlier.rename(self.data_dir / "sync")
        [damage] = self.damages()
        self.assertIn("a number again up to 2", damage["why"])
        self.repair()
        [line] = (self.data_dir / "damaged/1/records.jsonl").read_text().splitlines()
        self.assertEqual(base64.b64decode(json.loads(line)["value"]), b"2")
        self.assertEqual(json.loads(self.fragile(*new).stdout)["batch"], 3)

    def test_a_changed_byte_of_the_report_never_gives_a_wrong_number(self):
        print(f"seed {SEED}: check_test.py {FLIPS} {SEED}", flush=True)
        chance = random.Random(SEED)
        self.assertEqual(self.run_batch().returncode, 3)
        sound = self.folder / "sound"
        shutil.copytree(self.data_dir, sound)
        expected, done = self.rows_of_the_report().stdout, json.loads(self.run_batch().stdout)
        size = (sound / "report.db").stat().st_size
        for flips in (1, 20) * FLIPS:
            places = [chance.random() for _ in range(flips)]
            with self.subTest(seed=SEED, bytes=[int(size * place) for place in places]):
                shutil.rmtree(self.data_dir, ignore_errors=True)
                shutil.copytree(sound, self.data_dir)
                for place in places:
                    flip_a_byte(self.data_dir / "report.db", place)
                read, again = self.rows_of_the_report(), self.run_batch()
                if read.returncode == 0:
                    self.assertEqual(read.stdout, expected)
                else:
                    self.assertEqual(read.returncode, 6, read.stderr)
                    self.assertIn("check --repair", read.stderr)
                if again.returncode == 3:
                    self.assertEqual(json.loads(again.stdout)["aggregated"], done["aggregated"])
                else:
                    self.assertEqual(again.returncode, 6, again.stderr)
        found = self.check()
        self.assertEqual(found.returncode, 6)
        self.assertIn("report: pages of page", found.stdout)
        self.assert_mended()
        self.assertTrue((self.data_dir / "damaged/1/report/report.db").exists())

    def test_a_batch_whose_record_is_damaged_stays_the_batch_that_it_is(self):
        """And it is not counted beside itself."""
        self.assertEqual(self.run_batch().returncode, 3)
        self.assert_died(self.run_batch(failpoint="run.after_open"), "after the replay")
        sound = self.folder / "sound"
        self.data_dir.rename(sound)
        # The job's definition stands in the record and in its copy.
        tables = [table for table in (sound / "ledger").glob("*.sst")
                  if b"{format: lines}" in table.read_bytes()]
        self.assertEqual(len(tables), 2)
        for table in tables:
            with self.subTest(table=table.name):
                shutil.rmtree(self.data_dir, ignore_errors=True)
                shutil.copytree(sound, self.data_dir)
                (self.data_dir / "ledger" / table.name).write_bytes(
                    table.read_bytes().replace(b"{format: lines}", b"{format: limes}"))
                self.assertEqual(self.check().returncode, 6)
                self.assert_mended()

    def test_no_batch_begins_beside_one_that_only_the_report_knows(self):
        self.assertEqual(self.run_batch().returncode, 3)
        shutil.rmtree(self.data_dir / "ledger")
        refused = self.run_batch()
        self.assertEqual(refused.returncode, 6, refused.stdout)
        self.assertIn("the report holds batch 1 of job 'fragile'", refused.stderr)
        self.assertIn(f"`muster check --repair --data-dir '{self.data_dir}'`", refused.stderr)
        self.assertIn("the ledger does not know it", self.damages()[0]["why"])
        self.repair()
        done = self.run_batch()
        self.assert_exact(done, 3, [GIVEN_UP])
        self.assertEqual(self.reported_batches(), [json.loads(done.stdout)["batch"]])

    def test_a_job_may_be_called_as_a_queue_is(self):
        self.job = self.write("job.yaml", JOB.replace("name: fragile", "name: check-out-retail"))
        self.die_in_mid_batch()
        done = self.check()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_file_that_names_the_list_of_tables_and_is_gone_is_made_again(self):
        for part in ("queue", "ledger", "sync"):
            with self.subTest(part=part):
                shutil.rmtree(self.data_dir, ignore_errors=True)
                self.die_in_mid_batch()
                (self.data_dir / part / "CURRENT").unlink()
                refused = self.run_batch()
                self.assertEqual(refused.returncode, 6)
                self.assertIn("has lost its file CURRENT", refused.stderr)
                self.assertEqual([damage["part"] for damage in self.damages()], [part])
                self.assert_mended()

    def test_a_part_of_which_nothing_can_be_read_begins_anew_where_it_may(self):
        for part, code in (("queue", 0), ("ledger", 6)):
            with self.subTest(part=part):
                shutil.rmtree(self.data_dir, ignore_errors=True)
                self.die_with_everything_in_tables()
                for file in (self.data_dir / part).iterdir():
                    if file.name == "CURRENT" or file.suffix in (".sst", ".log"):
                        file.write_text("nonsense\n")
                self.assertEqual({damage["part"] for damage in self.damages()}, {part})
                done = self.check("--repair", "-o", "json")
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                [files] = [damage for damage in json.loads(done.stdout)["damaged"]
                           if damage["kind"] == "files"]
                self.assertEqual((files["part"], files["mendable"]), (part, code == 0))
                if code == 0:
                    self.assert_exact(self.run_batch(), 3, [GIVEN_UP])
                else:
                    self.assertIn("restore it from a backup", files["remedy"])
                    self.assertEqual(self.check("--repair").returncode, 6)

    def test_a_list_of_tables_that_is_damaged_is_made_again(self):
        for part in ("queue", "ledger", "sync"):
            with self.subTest(part=part):
                shutil.rmtree(self.data_dir, ignore_errors=True)
                self.die_in_mid_batch()
                (self.data_dir / part / "CURRENT").write_text("nonsense\n")
                self.assertEqual([damage["part"] for damage in self.damages()], [part])
                self.assert_mended()
                self.assertTrue((self.data_dir / "damaged/1" / part / "files/CURRENT").exists())

    def test_a_changed_bit_anywhere_in_a_table_is_found_and_mended(self):
        print(f"seed {SEED}: check_test.py {FLIPS} {SEED}", flush=True)
        chance = random.Random(SEED)
        self.die_with_everything_in_tables()
        sound = self.folder / "sound"
        self.data_dir.rename(sound)
        for part in ("queue", "ledger", "sync"):
            tables = sorted((sound / part).glob("*.sst"))
            self.assertTrue(tables, part)
            for _ in range(FLIPS):
                table, where = chance.choice(tables), chance.random()
                with self.subTest(seed=SEED, table=f"{part}/{table.name}", where=where):
                    shutil.rmtree(self.data_dir, ignore_errors=True)
                    shutil.copytree(sound, self.data_dir)
                    flip_a_byte(self.data_dir / part / table.name, where)
                    size = (sound / part / table.name).stat().st_size
                    if int(size * where) < size - FOOTER_BYTES:  # which has room to spare
                        self.assertEqual(self.check().returncode, 6)
                    self.assert_mended()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        FLIPS = int(sys.argv.pop(1))
    if len(sys.argv) > 1:
        SEED = int(sys.argv.pop(1))
    harness.main()
