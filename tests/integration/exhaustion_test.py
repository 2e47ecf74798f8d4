# SPDX-License-Identifier: Apache-2.0
"""A server under more connections, or with fewer threads, than its process can have."""

import socket
import time

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


if __name__ == "__main__":
    harness.main()
