# SPDX-License-Identifier: Apache-2.0
"""Schedules on a mesh with two initiators: each occurrence makes one batch, also when initiators die
between any two steps of it, and what was missed while none ran is made up for as the schedule says.
"""

import datetime
import json
import os
import signal
import time
import unittest.mock

import harness
import mesh_case
from harness import looks, retail_input
from mesh import READY_SECONDS, free_address
from mesh_on_newest_server_test import OnNewestServer

ROWS = 300
# More than the 60 s to the next minute.
CRON_SECONDS = 90
# In order of a schedule's life (muster/schedule, services/initiator/schedule).
CREATION = ["schedule.after_entry"]
OCCURRENCE = ["schedule.after_begin", "schedule.after_submit"]
UPDATE = "schedule.after_update"
REMOVAL = ["schedule.after_fence"]


def soon(seconds):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class SchedulesTest(mesh_case.MeshTest):
    def setUp(self):
        super().setUp()
        self.other_server = free_address()
        self.other = self.mesh.start_role("initiator", self.other_server, data="other")
        self.other.await_ready()
        self.apply_billing()
        self.data = retail_input(ROWS)

    def make(self, name, *when, server=None, code=0):
        done = self.muster("schedule", "create", name, "--job", "billing", "--input", self.data,
                           *when, "--server", server or self.mesh.server)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def schedule(self, name):
        return self.answer("schedule", "get", name)

    def await_schedule(self, name, reached, seconds=READY_SECONDS):
        for _ in looks(seconds):
            found = self.schedule(name)
            if reached(found):
                return found
        said = "".join(line for program in self.mesh.programs for line in program.log.lines)
        raise self.failureException(f"schedule {name} never got there: {found}\n{said}")

    def batches_of(self, name):
        """The batches of the schedule, at both initiators."""
        found = []
        for server in (self.mesh.server, self.other_server):
            done = self.muster("batch", "list", "--label", f"schedule={name}", "-o", "json",
                               "--server", server)
            self.assertEqual(done.returncode, 0, done.stderr)
            found += [batch["batch"] for batch in json.loads(done.stdout)]
        return found

    def assert_one_batch(self, name):
        """Of a schedule that has ended: there is one batch, and it counts what was submitted."""
        done = self.await_schedule(name, lambda schedule: schedule["state"] == "ended")
        self.assertEqual((done["submitted"], done["missed"], done["failed"]), (1, 0, 0), done)
        self.assertEqual(self.batches_of(name), [done["last_batch"]])
        for _ in looks(READY_SECONDS):
            for server in (self.mesh.server, self.other_server):
                got = self.muster("batch", "get", done["last_batch"], "-o", "json", "--server",
                                  server)
                if got.returncode == 0:
                    batch = json.loads(got.stdout)
                    if batch["state"] == "complete":
                        self.assertEqual(batch["transactions"], ROWS)
                        return
        self.fail(f"the batch of {name} is not complete")

    def die_at(self, failpoint, program):
        """Starts the program again so that it dies there."""
        program.kill()
        with unittest.mock.patch.dict(os.environ, MUSTER_FAILPOINT=failpoint):
            program.restart()

    def assert_died(self, program, failpoint):
        self.assertEqual(program.wait(), -signal.SIGKILL, failpoint)

    def test_two_initiators_make_one_batch_of_each_occurrence(self):
        names = [f"s{number}" for number in range(12)]
        at = soon(6)
        for number, name in enumerate(names):
            self.make(name, "--at", at, server=(self.mesh.server, self.other_server)[number % 2])
        self.assertEqual([schedule["schedule"] for schedule in self.answer("schedule", "list")],
                         sorted(names))
        for name in names:
            self.assert_one_batch(name)

    def test_a_death_between_any_two_steps_of_an_occurrence_makes_no_second_batch(self):
        self.other.kill()
        for failpoint in OCCURRENCE:
            with self.subTest(failpoint=failpoint):
                name = failpoint.split(".")[1]
                self.die_at(failpoint, self.mesh.initiator)
                self.make(name, "--in", "1s")
                self.assert_died(self.mesh.initiator, failpoint)
                self.mesh.initiator.restart()
                self.other.restart()
                self.assert_one_batch(name)
                self.other.kill()
        self.other.restart()

    def test_another_initiator_takes_over_from_one_that_stays_dead(self):
        failpoint = "schedule.after_begin"
        self.die_at(failpoint, self.other)
        self.mesh.initiator.freeze()
        self.make("orphan", "--in", "1s", server=self.other_server)
        self.assert_died(self.other, failpoint)
        self.mesh.initiator.thaw()
        done = self.await_schedule("orphan", lambda schedule: schedule["state"] == "ended",
                                   2 * READY_SECONDS)
        self.assertEqual(done["submitted"], 1, done)
        self.other.restart()
        self.assert_one_batch("orphan")

    def test_a_creation_or_removal_that_died_is_no_schedule_and_does_not_hold_its_name(self):
        for failpoint in CREATION:
            self.die_at(failpoint, self.mesh.initiator)
            self.make("half", "--in", "1h", code=5)
            self.assert_died(self.mesh.initiator, failpoint)
            self.mesh.initiator.restart()
            self.assertEqual(self.answer("schedule", "list"), [])
            self.make("half", "--in", "1h")
        for failpoint in REMOVAL:
            self.die_at(failpoint, self.mesh.initiator)
            self.assertEqual(self.ask("schedule", "delete", "half").returncode, 5)
            self.assert_died(self.mesh.initiator, failpoint)
            self.mesh.initiator.restart()
            self.assertEqual(self.answer("schedule", "list"), [])
            self.make("half", "--in", "1h")
        self.assertEqual(self.ask("schedule", "delete", "half").returncode, 0)

    def test_an_update_that_died_is_finished_by_the_same_command_and_occurs_once(self):
        self.make("moved", "--in", "1h")
        self.die_at(UPDATE, self.mesh.initiator)
        update = ["schedule", "update", "moved", "--at", soon(3), "--revision", "1", "-o", "json"]
        self.assertEqual(self.muster(*update, "--server", self.mesh.server).returncode, 5)
        self.assert_died(self.mesh.initiator, UPDATE)
        done = self.muster(*update, "--server", self.other_server)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["revision"], 2)
        self.mesh.initiator.restart()
        self.assert_one_batch("moved")

    def test_what_was_due_while_no_initiator_ran_is_submitted_late(self):
        self.make("late", "--in", "2s")
        self.mesh.initiator.kill()
        self.other.kill()
        time.sleep(2.5)  # its time passes
        self.mesh.initiator.restart()
        self.other.restart()
        self.assert_one_batch("late")

    def test_a_cron_schedule_is_paused_resumed_run_and_deleted(self):
        self.make("often", "--cron", "* * * * *", "--time-zone", "Europe/Berlin")
        self.make("paused", "--cron", "* * * * *")
        self.assertEqual(self.answer("schedule", "pause", "paused")["state"], "paused")
        first = self.await_schedule("often", lambda schedule: schedule["submitted"] == 1,
                                    CRON_SECONDS)
        self.assertEqual(first["last"][16:], ":00.000Z")
        self.assertEqual(self.batches_of("often"), [first["last_batch"]])
        self.assertEqual(self.batches_of("paused"), [])
        self.assertEqual(self.answer("schedule", "resume", "paused")["state"], "active")
        batch = self.answer("schedule", "run", "paused", "--run-id", "by-hand")["batch"]
        self.assertEqual(self.answer("schedule", "run", "paused", "--run-id", "by-hand")["batch"],
                         batch)
        self.assertEqual(self.batches_of("paused"), [batch])
        for name in ("often", "paused"):
            self.assertEqual(self.ask("schedule", "delete", name).returncode, 0)
        self.assertEqual(self.answer("schedule", "list"), [])
        self.assertEqual(self.ask("batch", "get", batch).returncode, 0)


class SchedulesOnNewestServerTest(OnNewestServer, SchedulesTest):
    """The same on the newest server."""


if __name__ == "__main__":
    harness.main()
