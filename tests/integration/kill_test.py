# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random instants, then the same command again: nothing lost, nothing counted twice.

    kill_test.py [KILLS [SEED]]      (MUSTER names the program; defaults: 50 kills, a random seed)

A failure prints the seed, and the seconds after which each process of its batch was killed.
"""

import random
import signal
import subprocess
import sys
import time

import harness
from harness import MusterTest, retail_input

KILLS = 50
SEED = random.SystemRandom().randrange(2**32)
ROWS = 50_000 if harness.WITH_SMALL_COUNTS else 200_000


class KillTest(MusterTest):
    def clean_run_seconds(self, data):
        begun = time.monotonic()
        code, _, errors = self.run_job(data, job=self.job)
        self.assertEqual(code, 0, errors)
        return time.monotonic() - begun

    def kill_until_done(self, data, longest, chance, kills_left, killed_after):
        """Kills and restarts one batch until it is complete; appends the times to
        `killed_after`."""
        while len(killed_after) < kills_left:
            instant = round(chance.uniform(0, longest), 6)
            process = self.start_run(data, "--quiet", job=self.job)
            try:
                process.wait(timeout=instant)
                break  # done before its time came
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                killed_after.append(instant)
            finally:
                process.communicate(timeout=harness.TIMEOUT_SECONDS)
        code, result, errors = self.run_job(data, job=self.job)
        self.assertEqual(code, 0, errors)
        self.assertEqual(result["transactions"], ROWS)
        self.assert_all_accounted_for(result)
        self.assert_report_is_the_direct_sum(data, result["batch"])
        self.assert_receipt_holds(result["batch"])

    def test_killed_at_random_instants_every_total_is_exact(self):
        print(f"seed {SEED}: kill_test.py {KILLS} {SEED}", flush=True)
        chance = random.Random(SEED)
        data = retail_input(ROWS)
        # Each start of a handler is an attempt. A run that is slower than the clean one can be
        # killed at the same item again and again: the high limit keeps that item from being given
        # up.
        job = harness.RETAIL_JOB.read_text()
        self.assertIn("max_attempts: 5", job)
        self.job = self.folder / "job.yaml"
        self.job.write_text(job.replace("max_attempts: 5", f"max_attempts: {KILLS + 1}"))
        longest = self.clean_run_seconds(data)
        kills = 0
        batches = 0
        exact = 0
        while kills < KILLS and exact == batches:
            self.data_dir = self.folder / f"data{batches}"
            batches += 1
            killed_after = []  # filled as the batch goes on, and printed if it fails
            with self.subTest(seed=SEED, batch=batches, kills_before=kills,
                              killed_after=killed_after):
                self.kill_until_done(data, longest, chance, KILLS - kills, killed_after)
                exact += 1
            kills += len(killed_after)
        print(f"{kills} kills over {batches} batches, every total of {exact} exact", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        KILLS = int(sys.argv.pop(1))
    if len(sys.argv) > 1:
        SEED = int(sys.argv.pop(1))
    harness.main()
