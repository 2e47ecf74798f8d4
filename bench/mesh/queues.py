# SPDX-License-Identifier: Apache-2.0
"""What mesh_bench runs on Redis: Celery, BullMQ and Asynq, those of them that are installed."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

from partials import add_up
from programs import Program, await_true, cpu_seconds, free_port

SOURCES = pathlib.Path(__file__).resolve().parents[1] / "queues"
INSTALLED = SOURCES.parents[1] / "build/queues"
SERVER = "redis-server"
READY = "ready"  # the key where the programs count their ready workers
HANDLED = "handled"  # the hash where they store what was made of each item
WORKERS = 2
RUN_SECONDS = 600


class Redis(Program):
    """A redis-server with an empty folder. What it has acknowledged survives the death of its
    process; a power cut may lose the last second."""

    def __init__(self, folder):
        self.port = free_port()
        super().__init__([SERVER, "--bind", "127.0.0.1", "--port", self.port, "--dir", folder,
                          "--appendonly", "yes", "--appendfsync", "everysec", "--save", ""],
                         folder / "redis-server.log")
        await_true("redis-server's start", self.is_there)

    def is_there(self):
        with contextlib.suppress(OSError):
            return self.ask("PING") == b"+PONG\r\n"
        return False

    def ask(self, command):
        """Returns the raw answer, which must be short."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(command.encode() + b"\r\n")
            return connection.recv(64)

    def handled(self):
        with (socket.create_connection(("127.0.0.1", self.port)) as connection,
              connection.makefile("rb") as answer):
            connection.sendall(f"HVALS {HANDLED}\r\n".encode())
            count = int(answer.readline()[1:])
            return [answer.read(int(answer.readline()[1:]) + 2) for _ in range(count)]

    def has_workers(self):
        return self.ask(f"GET {READY}") == b"$1\r\n%d\r\n" % WORKERS

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}/0"


@dataclasses.dataclass(frozen=True)
class Queue:
    """A program with the verb `work`, which has two workers, and one for each job."""

    name: str
    command: tuple[pathlib.Path | str, ...]
    library: pathlib.Path  # is there when bench/queues/install has installed it
    environment: dict[str, str] = dataclasses.field(default_factory=dict)

    def missing(self):
        """Returns the programs and libraries that are missing; an empty list when the queue can
        run."""
        lacks = [str(program) for program in (SERVER, self.command[0])
                 if shutil.which(program) is None]
        return lacks if self.library.exists() else [*lacks, str(self.library)]

    def run(self, folder, job, data):
        """Lets the workers handle each item of the file once. Returns the producer's figures, and
        the stored result of each item."""
        with contextlib.ExitStack() as programs:
            redis = programs.enter_context(Redis(folder))
            workers = programs.enter_context(
                Program([*self.command, "work", redis.url], folder / "workers.log",
                        **self.environment))
            await_true(f"the start of {self.name}'s workers", redis.has_workers)
            before, server_before = family_cpu(workers), redis.cpu()
            output = subprocess.run([*self.command, job, redis.url, data], check=True,
                                    stdout=subprocess.PIPE, timeout=RUN_SECONDS,
                                    env={**os.environ, **self.environment}).stdout
            worked, served = family_cpu(workers) - before, redis.cpu() - server_before
            handled = redis.handled()
        figures = json.loads(output)
        figures["cpu_seconds"] += worked
        figures["server_cpu_seconds"] = served
        if len(handled) != figures["items"]:
            sys.exit(f"{self.name} has handled {len(handled)} items: {figures}")
        return figures, handled

    def tiny(self, folder, data):
        """Returns the figures of items that need no work."""
        figures, counts = self.run(folder, "tiny", data)
        return {**figures, "handled": sum(map(int, counts)),
                "transactions_per_second": figures["items"] / figures["seconds"]}

    def retail(self, folder, data):
        """Returns the figures of the retail job, and its report."""
        figures, partials = self.run(folder, "retail", data)
        totals = add_up(partials)
        groups = totals.pop("groups")
        return {**figures, **totals,
                "transactions_per_second": totals["transactions"] / figures["seconds"]}, groups


def family_cpu(program):
    """The CPU time of a program and its children."""
    pid = program.process.pid
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return program.cpu() + sum(map(cpu_seconds, children.split()))


BULLMQ = INSTALLED / "bullmq/node_modules"
QUEUES = [
    Queue("celery", (INSTALLED / "celery/bin/python", SOURCES / "celery/celery_bench.py"),
          INSTALLED / "celery/bin/celery"),
    Queue("bullmq", ("node", SOURCES / "bullmq/bullmq_bench.cjs"), BULLMQ / "bullmq",
          {"NODE_PATH": str(BULLMQ)}),
    Queue("asynq", (INSTALLED / "asynq/asynq_bench",), INSTALLED / "asynq/asynq_bench"),
]


def installed_queues():
    """Returns the queues that can run; prints how to install the others."""
    present = []
    for queue in QUEUES:
        lacks = queue.missing()
        if lacks:
            print(f"{queue.name} is left out: there is no {', no '.join(dict.fromkeys(lacks))}; "
                  f"bench/queues/install {queue.name} installs it", file=sys.stderr)
        else:
            present.append(queue)
    return present
