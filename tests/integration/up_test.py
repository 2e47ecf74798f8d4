# SPDX-License-Identifier: Apache-2.0
"""`muster up`: a whole mesh in one process, with its engine in the data directory or on NATS."""

import json
import signal
import time

import harness
import mesh_case
from harness import retail_input
from mesh import READY_SECONDS, Program, free_address


class OneProcess:
    """`muster up` with all shared state in its data directory."""

    def __init__(self, folder):
        self.server = self.reporter = free_address()
        self.data_dir = folder / "data"
        self.programs = []

    def start(self):
        self.up = self.start_up(self.server)
        self.up.await_ready()

    def start_up(self, address, *more):
        self.programs.append(Program(
            [harness.MUSTER, "up", "--listen", address, "--data-dir", self.data_dir, "--threads", 2,
             *more], "msg=ready"))
        return self.programs[-1]

    def kill(self):
        for program in self.programs:
            program.kill()


class UpTest(mesh_case.MeshTest):
    ack_survives = "power"  # its own engine syncs

    def make_mesh(self):
        return OneProcess(self.folder)

    def test_a_batch_goes_all_the_way_and_is_there_for_commands_without_a_server_afterwards(self):
        data = retail_input(20000)
        self.answer("job", "apply", harness.RETAIL_JOB)
        result = self.submit("retail", data)
        self.assert_exact(data, 20000, result)
        served = self.report(result["batch"])
        self.assertEqual(self.mesh.up.stop(), 0)
        self.assertEqual(harness.MusterTest.report(self, result["batch"]), served)

    def test_a_second_process_on_the_same_data_says_who_has_it(self):
        second = self.mesh.start_up(free_address())
        second.await_line("is used by another process")
        self.assertEqual(second.wait(), 5)

    def test_no_command_waits_longer_for_a_frozen_process_than_it_is_told(self):
        self.answer("job", "apply", harness.RETAIL_JOB)
        data = retail_input(2000)
        batch = str(self.submit("retail", data)["batch"])
        self.mesh.up.signal(signal.SIGSTOP)
        self.addCleanup(self.mesh.up.signal, signal.SIGCONT)
        for command, code in ((["batch", "submit", "retail", "--input", data, "--new", "--wait-timeout", "2s"], 124),
                              (["batch", "submit", "retail", "--input", data, "--wait", "--wait-timeout", "2s"], 124),
                              (["batch", "watch", batch, "--wait-timeout", "2s"], 124),
                              (["batch", "retry", batch, "--all", "--wait", "--wait-timeout", "2s"], 124),
                              (["batch", "get", batch, "--timeout", "2s"], 5),
                              (["worker", "list", "--timeout", "2s"], 5)):
            done = self.ask(*command)  # which has a bound of its own
            self.assertEqual(done.returncode, code, f"{command}: {done.stderr}")

    def test_every_role_is_heard_and_well(self):
        end = time.monotonic() + READY_SECONDS
        while (done := self.ask("doctor")).returncode != 0 and time.monotonic() < end:
            pass  # they answer each other's first heartbeats
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for role in ("initiator", "processor", "controller"):
            self.assertRegex(done.stdout, f"ok: {role} .*: {self.mesh.server} is ready")

    def test_logs_json_and_switches_to_debug_and_back(self):
        talker = Program([harness.MUSTER, "up", "--listen", free_address(), "--data-dir",
                          self.folder / "talker", "--log-format", "json"], '"msg":"ready"')
        self.addCleanup(talker.kill)
        talker.await_ready()
        for level in ("debug", "info"):
            talker.signal(signal.SIGUSR1)
            talker.await_line(f'"msg":"the log level changes","to":"{level}"')
        self.assertEqual(talker.stop(), 0)
        for line in talker.log.lines:
            self.assertLessEqual({"time", "level", "msg"}, set(json.loads(line)))


class UpFaultTest(mesh_case.FaultTest):
    ack_survives = "power"
    make_mesh = UpTest.make_mesh

    def test_a_killed_process_goes_on_with_its_batches(self):
        self.mesh.up.kill()
        self.mesh.up.restart()
        self.assert_ends_exactly_once()


class UpOnNatsTest(mesh_case.MeshTest):
    def start_mesh(self):
        nats = self.mesh.start_nats()
        nats.await_ready()
        self.up = OneProcess(self.folder)
        self.addCleanup(self.up.kill)
        self.mesh.server = self.mesh.reporter = self.up.server
        self.up.start_up(self.up.server, "--nats", f"nats://{self.mesh.nats_addresses[0]}").await_ready()

    def test_other_processors_help_the_one_process(self):
        self.answer("job", "apply", harness.RETAIL_JOB)
        helper = self.mesh.start_role("processor", None, "--threads", 1)
        helper.await_line("works for a job")
        data = retail_input(20000)
        self.assert_exact(data, 20000, self.submit("retail", data))
        self.assertEqual(len(self.answer("worker", "list")), 2)


if __name__ == "__main__":
    harness.main()
