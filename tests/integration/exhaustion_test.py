# SPDX-License-Identifier: Apache-2.0
"""A server under more connections, or with fewer threads, than its process can have, and a run with fewer threads."""

import os
import resource
import shutil
import socket
import subprocess
import time
import unittest

import harness
from harness import MusterTest
from mesh import READY_SECONDS, Program, free_address

DESCRIPTORS = 256
CONNECTIONS = 400


def limited(limit, *command):
    """The command under a limit of its shell's `ulimit`."""
    return ["sh", "-c", f"ulimit {limit} && exec \"$@\"", "sh", *command]


class ExhaustionTest(MusterTest):
    def start_up(self, limit, *more):
        self.server = free_address()
        up = Program(limited(limit, harness.MUSTER, "up", "--listen", self.server, "--data-dir",
                             self.data_dir, *more), "msg=ready")
        self.addCleanup(up.kill)
        return up

    def batches(self):
        return self.muster("batch", "list", "--server", self.server, "--timeout", "5s")

    def flood(self):
        """Connects as often as a server with so few descriptors cannot take, and says nothing."""
        host, port = self.server.split(":")
        connections = [socket.create_connection((host, int(port))) for _ in range(CONNECTIONS)]
        self.addCleanup(lambda: [connection.close() for connection in connections])
        return connections

    def await_answer(self):
        end = time.monotonic() + READY_SECONDS
        while (done := self.batches()).returncode != 0 and time.monotonic() < end:
            pass
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_server_answers_again_once_a_flood_of_connections_is_over(self):
        up = self.start_up(f"-n {DESCRIPTORS}")
        up.await_ready()
        connections = self.flood()
        up.await_line("connections are refused")
        for connection in connections:
            connection.close()
        self.await_answer()

    def test_connections_that_say_nothing_make_room_by_themselves(self):
        up = self.start_up(f"-n {DESCRIPTORS}")
        up.await_ready()
        self.flood()
        up.await_line("connections are refused")
        self.await_answer()

    def test_a_soft_limit_of_descriptors_is_raised(self):
        up = self.start_up(f"-S -n {DESCRIPTORS}")
        up.await_ready()
        self.flood()
        self.await_answer()
        self.assertNotIn("connections are refused", "".join(up.log.lines))

    def test_a_process_that_can_start_no_thread_says_so_and_ends_with_5(self):
        # Room for the program, but not for the stacks of its threads.
        up = self.start_up("-v 300000")
        self.assertEqual(up.wait(), 5, "".join(up.log.lines))
        self.assertRegex("".join(up.log.lines), "muster: cannot (start a thread|go on): .*ulimit")


@unittest.skipUnless(os.geteuid() == 0, "only root can run a program as a user who has no other process")
class FewThreadsTest(MusterTest):
    """Programs of a user who may have so many threads and no more, as under a cgroup's pids.max."""

    USER = 54_321
    ENOUGH = 200

    def setUp(self):
        super().setUp()
        # The user may not be let into the folder of the build.
        for name in ("muster", "muster-processor"):
            shutil.copy(harness.MUSTER, self.folder / name)
        os.chmod(self.folder, 0o777)

    def with_threads(self, threads, *arguments, program="muster"):
        """Runs a program of the folder to its end with so many threads at most."""
        def confine():
            resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.setgroups([])
            os.setgid(self.USER)
            os.setuid(self.USER)
        return subprocess.run([str(self.folder / program), *map(str, arguments)], capture_output=True, text=True,
                              cwd=self.folder, timeout=harness.TIMEOUT_SECONDS, preexec_fn=confine)

    def assert_ends_with_5_until_there_are_enough(self, goes_well, *arguments):
        """With 1, 2, 3, … threads. Returns how many are enough."""
        for threads in range(1, self.ENOUGH):
            done = self.with_threads(threads, *arguments)
            if goes_well(done):
                return threads
            self.assertEqual(done.returncode, 5, f"{threads} threads: {done.stderr}")
            self.assertRegex(done.stderr, "muster: .*thread.*ulimit -u", f"{threads} threads")
        return self.fail("there are never enough")

    def test_a_run_without_threads_for_its_workers_says_so_and_ends_with_5(self):
        data = self.retail_rows((3, "0.1", "7", "France"))
        job = shutil.copy(harness.RETAIL_JOB, self.folder)
        enough = self.assert_ends_with_5_until_there_are_enough(
            lambda done: done.returncode == 0, "run", job, "--input", data, "--data-dir", self.folder / "few", "-q")
        self.assertGreater(enough, 3)

    def test_a_command_without_threads_for_its_calls_says_so_and_ends_with_5(self):
        self.assert_ends_with_5_until_there_are_enough(
            lambda done: "cannot connect" in done.stderr, "batch", "list", "--server", free_address(), "--timeout",
            "1m")

    def test_a_service_without_threads_for_its_stores_says_so_and_does_not_wait_for_them(self):
        done = self.with_threads(20, "--nats", f"nats://{free_address()}", "--listen", free_address(), "--metrics", "",
                                 program="muster-processor")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertRegex(done.stderr, "muster-processor: cannot start a thread: .*ulimit -u")


if __name__ == "__main__":
    harness.main()
