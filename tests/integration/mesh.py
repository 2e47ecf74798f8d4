# SPDX-License-Identifier: Apache-2.0
"""A mesh of real programs on loopback, for a test to observe and to break."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading

NATS_SERVERS = os.environ.get("MUSTER_NATS_SERVERS", "nats-server").split(":")
READY_SECONDS = 60
LOOPBACK = "127.0.0.1"
PORTS_IN_A_ROW = range(20000, 32000)
# Where the programs of the tests' jobs lie: those of the examples, and those that tests write.
ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("MUSTER_HANDLER_PROGRAMS", f"{ROOT}/examples,{tempfile.gettempdir()}")
# The default port of a program's metrics may be one that another program is about to get.
os.environ.setdefault("MUSTER_METRICS", "")
# The sockets that hold the ports that were handed out, until the test program ends.
reserved = []


def hold(port):
    """Reserves the port (0: any) for a server, in this program and in others, also while the server has
    not started yet or is down.

    A socket that never listens holds the port: the kernel does not give it to a bind to port 0 or to an
    outgoing connection, but gives it to a bind that names it and sets SO_REUSEADDR, as servers do.
    """
    holder = socket.socket()
    holder.bind((LOOPBACK, port))
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # before, it might share one
    return holder


def free_address():
    reserved.append(hold(0))
    return "%s:%d" % reserved[-1].getsockname()


def free_ports(count, step=1):
    """Returns the first of `count` free ports, each `step` above the one before."""
    while True:
        first = random.choice(PORTS_IN_A_ROW)
        with contextlib.suppress(OSError):
            reserved.extend([hold(first + i * step) for i in range(count)])
            return first


class Log:
    """The output of one run of a program."""

    def __init__(self):
        self.lines = []
        self.ended = False
        self.heard = threading.Condition()

    def read(self, stream):
        with stream:
            for line in stream:
                with self.heard:
                    self.lines.append(line)
                    self.heard.notify_all()
        with self.heard:
            self.ended = True
            self.heard.notify_all()

    def await_line(self, text, seconds, times):
        def said():
            return sum(text in line for line in self.lines) >= times
        with self.heard:
            self.heard.wait_for(lambda: said() or self.ended, seconds)
            return said()


class Program:
    """A program that can be killed, frozen and started again."""

    def __init__(self, argv, when_ready):
        self.argv = [str(argument) for argument in argv]
        self.when_ready = when_ready  # part of the line that reports readiness
        self.start()

    def start(self):
        # A new log: the reader of the previous run may not have seen its end yet.
        self.log = Log()
        self.process = subprocess.Popen(
            self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True)
        self.reader = threading.Thread(target=self.log.read, args=(self.process.stderr,))
        self.reader.start()

    def await_line(self, text, seconds=READY_SECONDS, times=1):
        """Waits until the program has printed `text` this often since its last start."""
        if not self.log.await_line(text, seconds, times):
            raise AssertionError(
                f"{self.argv[0]} did not say {text} {times}×:\n{''.join(self.log.lines)}")

    def await_ready(self):
        self.await_line(self.when_ready)

    def restart(self):
        self.start()
        self.await_ready()

    def kill(self):
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self):
        """Its exit code after SIGTERM."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def freeze(self):
        """Returns when the program has stopped."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self):
        self.process.wait(READY_SECONDS)
        # A handler's program that outlives it also has its stderr open.
        self.reader.join(0)
        return self.process.returncode


class Mesh:
    """A NATS server or a cluster of them, an initiator, a controller, and two processors with one
    worker each."""

    LEASE_SECONDS = 2

    def __init__(self, folder, nats_server, nats_servers):
        self.folder = folder
        # Debian has it where only root looks.
        self.nats_server = shutil.which(nats_server, path=os.environ["PATH"] + ":/usr/sbin")
        self.role_options = []
        self.programs = []
        self.nats_addresses = [free_address() for _ in range(nats_servers)]
        self.routes = [f"nats://{free_address()}" for _ in range(nats_servers)]
        self.server = free_address()
        self.reporter = free_address()

    def start(self):
        self.nats_cluster = [self.start_nats(number) for number in range(len(self.routes))]
        self.nats = self.nats_cluster[0]
        for server in self.nats_cluster:
            server.await_ready()
        # The initiator is ready first, so that it receives the first heartbeats of the others.
        self.initiator = self.start_role("initiator", self.server)
        self.initiator.await_ready()
        self.controller = self.start_role("controller", self.reporter)
        self.processors = self.start_processors()
        for program in self.programs:
            program.await_ready()

    def start_processors(self):
        return [self.start_role("processor", None, "--threads", 1) for _ in range(2)]

    def start_nats(self, number=0):
        """Starts a NATS server, without waiting until it is ready."""
        host, port = self.nats_addresses[number].split(":")
        command = [self.nats_server, "-js", "-sd", self.folder / f"nats{number}", "-a", host, "-p",
                   port]
        if len(self.routes) > 1:
            command += ["-n", f"nats{number}", "--cluster_name", "muster", "--cluster",
                        self.routes[number], "--routes", ",".join(self.routes)]
        return self.add(Program(command, "Server is ready"))

    def start_role(self, role, address=None, *more, data=None):
        """Starts a role; `data` names its data directory if it is not its only instance."""
        return self.add(Program(
            [os.environ[f"MUSTER_{role.upper()}_PROGRAM"], "--listen", address or free_address(),
             *self.nats_arguments(), "--replicas", len(self.routes), "--lease",
             f"{self.LEASE_SECONDS}s", "--data-dir", self.folder / (data or role),
             *self.role_options, *more],
            "msg=ready"))

    def nats_arguments(self):
        """The arguments by which a role finds its server."""
        return ["--nats", ",".join(f"nats://{address}" for address in self.nats_addresses)]

    def add(self, program):
        self.programs.append(program)
        return program

    def kill(self):
        for program in self.programs:
            program.kill()


class Bottleneck:
    """A proxy before a server that lets only so many bytes of the first connection through."""

    def __init__(self, server, limit):
        self.server = server
        self.left = limit
        self.passed = 0
        self.full = threading.Event()
        self.listener = socket.create_server((LOOPBACK, 0))
        self.address = "%s:%d" % self.listener.getsockname()
        self.sockets = [self.listener]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        client, _ = self.listener.accept()
        host, port = self.server.split(":")
        there = socket.create_connection((host, int(port)))
        self.sockets += [client, there]
        threading.Thread(target=self.pump, args=(there, client), daemon=True).start()
        self.pump(client, there, self.take)

    def take(self, data):
        data = data[:self.left]
        self.left -= len(data)
        self.passed += len(data)
        if self.left == 0:
            self.full.set()
        return data

    @staticmethod
    def pump(source, sink, take=lambda data: data):
        try:
            while data := take(source.recv(1 << 16)):
                sink.sendall(data)
        except OSError:
            pass  # one of them has hung up

    def close(self):
        for each in self.sockets:
            each.close()


class Cut(Bottleneck):
    """Cuts the first connection when its limit has passed, or later, when `cut` is called. Later
    connections have no limit, and find out by themselves whether the server is up."""

    def __init__(self, server, limit, at_once=True):
        self.may_cut = threading.Event()
        if at_once:
            self.may_cut.set()
        super().__init__(server, limit)

    def cut(self):
        self.may_cut.set()

    def serve(self):
        super().serve()
        self.may_cut.wait()
        self.passed = 0
        for each in self.sockets[1:]:
            # Not only closed: the other pump is still about to read.
            with contextlib.suppress(OSError):  # the other side was first
                each.shutdown(socket.SHUT_RDWR)
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return  # closed
            self.connect(client)

    def connect(self, client):
        host, port = self.server.split(":")
        try:
            there = socket.create_connection((host, int(port)))
        except OSError:
            client.close()
            return
        self.sockets += [client, there]
        for pump in ((there, client), (client, there, self.count)):
            threading.Thread(target=self.pump, args=pump, daemon=True).start()

    def count(self, data):
        self.passed += len(data)
        return data
