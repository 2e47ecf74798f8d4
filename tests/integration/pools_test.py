# SPDX-License-Identifier: Apache-2.0
"""Kinds of work that share processors and do not hold each other up."""

import json
import time

import harness
from harness import looks, retail_input
from mesh import READY_SECONDS, Mesh
from mesh_case import FREE_ITEMS, GATED, ROWS, ROWS_PER_ITEM, Gate, MeshTest


class PoolsMesh(Mesh):
    """One processor, with a pool for each of two jobs."""

    def start_processors(self):
        return [self.start_role("processor", None, "--job", "urgent=2", "--job", "bulk=1")]


class PoolsTest(MeshTest):
    def make_mesh(self):
        return PoolsMesh(self.folder, self.nats_server, self.nats_servers)

    def setUp(self):
        super().setUp()
        self.gate = Gate(self.folder / "gate")
        self.addCleanup(self.gate.open)
        self.data = retail_input(ROWS)

    def apply_both(self):
        # An item of bulk takes until the gate opens.
        self.apply_billing(self.write("gated.py", GATED), self.gate.path, name="bulk")
        self.apply_billing(name="urgent")

    def test_a_flood_of_slow_items_does_not_delay_those_of_another_job(self):
        self.apply_both()
        flood = self.start_submit("bulk", self.data)
        self.await_batch(1, lambda batch: batch["items_counted"] == FREE_ITEMS)
        self.await_stored("local/bulk-in-0", ROWS // ROWS_PER_ITEM - FREE_ITEMS)
        for request in range(3):
            self.assert_exact(self.data, ROWS, self.submit("urgent", self.data, str(request)))
        [bulk] = [b for b in self.answer("batch", "list") if b["job"] == "bulk"]
        self.assertEqual(bulk["items_counted"], FREE_ITEMS, "bulk was far from done")
        self.gate.open()
        out, errors = flood.communicate(timeout=harness.TIMEOUT_SECONDS)
        self.assertEqual(flood.returncode, 0, errors)
        self.assert_exact(self.data, ROWS, json.loads(out))

    def test_each_job_shows_the_pool_that_it_was_given(self):
        self.apply_both()
        self.assert_exact(self.data, ROWS, self.submit("urgent", self.data))
        workers = {worker["job"]: worker for worker in self.answer("worker", "list")}
        self.assertEqual({job: worker["threads_max"] for job, worker in workers.items()},
                         {"bulk": 1, "urgent": 2})

    def test_the_jobs_of_the_example_share_a_handler_and_no_workers(self):
        for job in ("urgent", "bulk"):
            self.answer("job", "apply", harness.ROOT / f"examples/priorities/{job}.yaml")
        for job in ("bulk", "urgent"):
            self.await_handler(job)
            self.assert_exact(self.data, ROWS, self.submit(job, self.data, job))

    def await_stored(self, queue, items):
        for _ in looks(READY_SECONDS):
            stored = {found["queue"]: found["ready"] + found["in_flight"]
                      for found in self.answer("queue", "list")}
            if stored.get(queue) == items:
                return
        self.fail(f"{queue} never had {items} items: {stored}")

    def await_handler(self, job):
        end = time.monotonic() + READY_SECONDS
        while job not in [worker["job"] for worker in self.answer("worker", "list")]:
            self.assertLess(time.monotonic(), end, f"nobody works for {job}")

    def test_a_processor_waits_for_a_job_that_is_applied_later_and_leaves_others_alone(self):
        self.apply_billing(name="foreign")
        self.apply_billing(name="urgent")
        self.assert_exact(self.data, ROWS, self.submit("urgent", self.data))
        self.assertEqual([worker["job"] for worker in self.answer("worker", "list")], ["urgent"])


class PoolOptionsTest(MeshTest):
    def start_mesh(self):
        pass

    def test_pools_that_cannot_be_are_refused_at_the_start(self):
        for pools, why in ((["bulk=0"], "1 to 1000 workers"), (["bulk=1001"], "1 to 1000 workers"),
                           (["bulk", "bulk=2"], "job bulk is named twice")):
            options = [option for pool in pools for option in ("--job", pool)]
            refused = self.mesh.start_role("processor", None, *options)
            self.assertEqual(refused.wait(), 2)
            refused.await_line(why)


if __name__ == "__main__":
    harness.main()
