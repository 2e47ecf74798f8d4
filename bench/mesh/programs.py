# SPDX-License-Identifier: Apache-2.0
"""Starts what mesh_bench measures: a nats-server, and a mesh of muster's programs on it."""

import collections
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import urllib.request

START_SECONDS = 60
STOP_SECONDS = 30
TICKS = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid):
    """User and system time of a process and of the children that it has waited for."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def peak_megabytes(pid):
    """The most resident memory that a process has had (VmHWM)."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1000


class Largest:
    """The most megabytes of a folder's files, looked at ten times a second, in a `with` block."""

    def __init__(self, folder):
        self.folder = folder
        self.megabytes = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def look(self):
        while True:
            bytes_now = 0
            for file in self.folder.rglob("*"):
                with contextlib.suppress(OSError):  # deleted meanwhile
                    bytes_now += file.stat().st_size if file.is_file() else 0
            self.megabytes = max(self.megabytes, bytes_now / 1e6)
            if self.ended.wait(0.1):
                return


class Program:
    """A child process whose output goes to a file; ended with the `with` block."""

    def __init__(self, command, log, **environment):
        self.name = pathlib.Path(command[0]).name
        self.log = pathlib.Path(log)
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=output,
                                            env={**os.environ, **environment})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def cpu(self):
        if self.process.poll() is not None:
            sys.exit(f"{self.name} has ended:\n{self.log.read_text(errors='replace')[-2000:]}")
        return cpu_seconds(self.process.pid)


def await_true(what, is_true):
    deadline = time.monotonic() + START_SECONDS
    while not is_true():
        if time.monotonic() > deadline:
            sys.exit(f"{what} takes too long")
        time.sleep(0.1)


class Server(Program):
    """A nats-server with an empty store.

    `sync_always`: it syncs each message to disk before it acknowledges it (from 2.10 on).
    """

    def __init__(self, program, folder, sync_always=False):
        self.port, self.monitor = free_port(), free_port()
        self.sync_always = sync_always
        self.store = folder / "store"
        settings = folder / "nats-server.conf"
        settings.write_text("jetstream { sync_interval: always }\n" if sync_always else
                            "jetstream: enabled\n")
        super().__init__([program, "-c", settings, "-a", "127.0.0.1", "-p", self.port,
                          "-m", self.monitor, "-sd", self.store],
                         folder / "nats-server.log")
        await_true("nats-server's start", self.is_there)

    def is_there(self):
        with contextlib.suppress(OSError):
            return self.ask("healthz?js-enabled-only=true")["status"] == "ok"
        return False

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.port}"

    def ask(self, page):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/{page}") as answer:
            return json.load(answer)

    def messages_in(self):
        return self.ask("varz")["in_msgs"]


class Ear:
    """Counts the messages of a server by subject, for the time of a `with` block."""

    def __init__(self, server):
        self.counts = collections.Counter()
        self.connection = socket.create_connection(("127.0.0.1", server.port))
        self.lines = self.connection.makefile("rb")
        self.connection.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB > 1\r\nPING\r\n')
        while self.lines.readline().strip() != b"PONG":
            pass
        self.thread = threading.Thread(target=self.listen)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.connection.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.connection.close()

    def listen(self):
        for line in self.lines:
            words = line.split()
            if words and words[0] in (b"MSG", b"HMSG"):
                self.counts[words[1].decode()] += 1
                self.lines.read(int(words[-1]) + 2)
            elif words and words[0] == b"PING":
                self.connection.sendall(b"PONG\r\n")


class Mesh:
    """An initiator, a controller and two processors, with empty data directories.

    They are told whether the server syncs each message.
    """

    def __init__(self, build, server, folder, threads, jobs):
        self.client = build / "bench/mesh_client"
        self.muster = build / "cli/muster"
        self.folder = folder
        self.lapses = folder / "lapses"
        self.initiator = f"127.0.0.1:{free_port()}"
        self.programs = [self.start(server, build / "services/initiator/muster-initiator",
                                    "initiator", self.initiator),
                         self.start(server, build / "services/controller/muster-controller",
                                    "controller")]
        for number in (1, 2):
            self.programs.append(
                self.start(server, build / "bench/mesh_processor", f"processor-{number}", None,
                           "--threads", threads))
        for job in jobs:
            await_true("the mesh's start", lambda job=job: self.ask("apply", job) is not None)

    def start(self, server, program, name, address=None, *more):
        return Program([program, "--listen", address or f"127.0.0.1:{free_port()}",
                        "--nats", server.url, "--data-dir", self.folder / name,
                        "--ack-survives", "power" if server.sync_always else "process", *more],
                       self.folder / f"{name}.log", MUSTER_BENCH_LAPSES=str(self.lapses))

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for program in reversed(self.programs):
            program.__exit__(*error)

    def ask(self, verb, *words):
        """Returns the client's output, or None when the client failed."""
        asked = subprocess.run([self.client, verb, self.initiator, *map(str, words)],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return asked.stdout if asked.returncode == 0 else None

    def submit(self, job, data):
        output = self.ask("submit", job, data)
        if output is None:
            sys.exit(f"submitting {data} to the job {job} failed; see {self.folder}")
        return json.loads(output)

    def warm_up(self, job, data):
        """Waits until a batch has passed through the whole mesh."""
        await_true("the first batch", lambda: self.ask("submit", job, data) is not None)

    def report(self, batch):
        return subprocess.run([self.muster, "report", str(batch), "--data-dir",
                               self.folder / "controller", "-o", "json"],
                              check=True, stdout=subprocess.PIPE).stdout

    def cpu(self):
        return {program.log.stem: program.cpu() for program in self.programs}

    def peak_megabytes(self):
        return {program.log.stem: peak_megabytes(program.process.pid) for program in self.programs}
