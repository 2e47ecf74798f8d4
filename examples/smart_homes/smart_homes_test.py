"""The example in small: processors join, leave and are killed while readings come in, and the totals
are exact in the end."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "smart_homes"
SIZE = ["--readings", "20000", "--homes", "500", "--seed", "7"]


def free_port():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return holder.getsockname()[1]


def await_port(port):
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise


class SmartHomesTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        port = free_port()
        server = subprocess.Popen(
            ["nats-server", "-js", "-sd", self.directory, "-a", "127.0.0.1", "-p", str(port)],
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        await_port(port)
        self.url = f"nats://127.0.0.1:{port}"

    def run_program(self, *arguments):
        return subprocess.run(
            [PROGRAM, *arguments, "--url", self.url],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90, check=False,
        )

    def join(self, member):
        process = subprocess.Popen(
            [PROGRAM, "process", "--url", self.url, "--member", member, "--interval-ms", "300"],
            stdout=subprocess.PIPE, text=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def await_partition(self, process):
        for line in process.stdout:
            if line.startswith("partition") and "from" in line:
                return
        self.fail("the processor has ended")

    def test_counts_each_reading_once_while_processors_come_go_and_die(self):
        fed = subprocess.Popen(
            [PROGRAM, "feed", *SIZE, "--url", self.url], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(fed.stdout.close)
        self.addCleanup(fed.wait)
        first = self.join("first")
        self.await_partition(first)
        second = self.join("second")
        self.await_partition(second)
        first.kill()
        third = self.join("third")
        self.await_partition(third)
        second.send_signal(signal.SIGTERM)
        self.assertEqual(fed.wait(), 0)
        deadline = time.monotonic() + 60
        while True:
            checked = self.run_program("check", *SIZE)
            if checked.returncode == 0:
                break
            self.assertLess(time.monotonic(), deadline, checked.stdout)
        self.assertIn("20000 readings", checked.stdout)
        self.assertIn("16 of 16 partitions are exact", checked.stdout)


if __name__ == "__main__":
    if shutil.which("nats-server") is None:
        print("skipped: there is no nats-server")
        sys.exit(77)
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    unittest.main()
