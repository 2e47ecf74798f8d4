# SPDX-License-Identifier: Apache-2.0
"""A mesh of real programs on loopback, with a proxy on each way between them, for faults to break."""

import os
import pathlib
import shutil
import signal
import subprocess
import time

from mesh import free_address
from proxy import Link
from workload import LEASE_SECONDS

READY_SECONDS = 60
STOP_SECONDS = 45
POLL_SECONDS = 0.02
DISK_BYTES = 64 << 20  # RocksDB sets space aside for its logs, as far as there is some
# Its decisions go nowhere: an actuator that starts and stops replicas would also restart what a fault has killed.
RULES = """mode: act
targets:
  chaos: {kind: dry-run, name: processor, queues: [chaos-in], sla: {max: 300s}, max: 4}
"""


class Program:
    """A program that can be killed, frozen and started again. All its runs write into one log."""

    def __init__(self, name, argv, ready, folder):
        self.name = name
        self.argv = [str(argument) for argument in argv]
        self.ready = ready.encode()  # part of the line that reports readiness
        self.folder = folder
        self.log = folder / f"{name}.log"
        self.process = None
        self.wanted = True  # a fault may want it down
        self.leaving = False  # was told to

    def start(self):
        self.log_begin = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, cwd=self.folder)
        self.leaving = False

    def said(self):
        """Returns what it has said since its last start."""
        with self.log.open("rb") as log:
            log.seek(self.log_begin)
            return log.read()

    def runs(self):
        return self.process.poll() is None

    def is_ready(self):
        return self.runs() and not self.leaving and self.ready in self.said()

    def kill(self):
        self.wanted, self.leaving = False, True
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def terminate(self):
        """SIGTERM, without waiting: a frozen program takes it later."""
        self.wanted, self.leaving = False, True
        self.process.terminate()

    def stop(self):
        """Returns its exit code after SIGTERM; None if it had to be killed."""
        self.terminate()
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def threads(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("Threads:")[2].split()[0])


class MeshUnderTest:
    """One or three NATS servers, initiators, a controller, two processors and a scaling agent.

    Each role reaches each NATS server, and each caller an initiator or the controller, by a Link."""

    def __init__(self, folder, shape):
        self.folder = folder
        self.shape = shape
        self.programs = {}  # by name, in the order of their start
        self.links = {}  # by name
        self.disks = {}  # mount points, by the program whose data they hold
        self.moved = {}  # data directories that a fault has moved, by program
        self.addresses = {}  # where the servers listen, behind their links, by name
        self.nats_addresses = [free_address() for _ in range(shape["nats"])]
        self.routes = [f"nats://{free_address()}" for _ in range(shape["nats"])]

    def start(self):
        for name in self.shape["disks"]:
            self.mount(name)
        for number in range(self.shape["nats"]):
            self.add_nats(number)
        self.start_all()
        for number in range(self.shape["initiators"]):
            self.add_server("initiator", number)
        self.start_all()  # first, so that it receives the first heartbeats of the others
        self.add_server("controller", None)
        for number in range(2):
            self.add_role("processor", f"processor{number}", free_address(), "--threads", 2,
                          "--handler-programs", self.folder,
                          *["--content-from-initiator"] * (number == 1 and self.shape["content_sent"]))
        rules = self.folder / "rules.yaml"
        rules.write_text(RULES)
        if self.shape["agent"]:
            self.add_role("scaling-agent", "agent", free_address(), "--rules", rules, "--actuator",
                          "dry-run")
        self.start_all()

    def start_all(self):
        """Starts what does not run, and waits until all are ready."""
        for program in self.programs.values():
            if program.process is None:
                program.start()
        late = self.await_ready()
        if late:
            raise AssertionError(f"{late} did not get ready:\n{self.tail(late)}")

    def await_ready(self):
        """Returns the name of a program that did not get ready in time, or None."""
        end = time.monotonic() + READY_SECONDS
        while late := [name for name, program in self.programs.items() if not program.is_ready()]:
            if time.monotonic() > end:
                return late[0]
            time.sleep(POLL_SECONDS)
        return None

    def tail(self, name, lines=12):
        text = self.programs[name].said().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def mount(self, name):
        """Gives a program a small disk of its own."""
        disk = self.folder / f"{name}-disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(disk)],
                       check=True, timeout=30)
        self.disks[name] = disk

    def data_dir(self, name):
        if name in self.disks:
            return self.disks[name] / "data"
        return self.moved.get(name, self.folder / name)

    def add_nats(self, number):
        name = f"nats{number}"
        # Debian has it where only root looks.
        server = shutil.which(self.shape["server"], path=os.environ["PATH"] + ":/usr/sbin")
        host, port = self.nats_addresses[number].split(":")
        argv = [server, "-js", "-sd", self.data_dir(name), "-a", host, "-p", port]
        if len(self.routes) > 1:
            # Clients must not learn the addresses behind their links.
            argv += ["-n", name, "--cluster_name", "muster", "--cluster", self.routes[number],
                     "--routes", ",".join(self.routes), "--no_advertise"]
        self.programs[name] = Program(name, argv, "Server is ready", self.folder)

    def add_server(self, role, number):
        """Adds a role that others call, and the link to it."""
        name = role if number is None else f"{role}{number}"
        address = free_address()
        self.addresses[name] = address
        self.links[name] = Link(address)
        self.add_role(role, name, address, "--advertise", self.links[name].address)

    def add_role(self, role, name, address, *more):
        links = []
        for number, server in enumerate(self.nats_addresses):
            link = self.links[f"{name}-nats{number}"] = Link(server)
            links.append(f"nats://{link.address}")
        variable = {"scaling-agent": "MUSTER_SCALING_AGENT_PROGRAM"}.get(
            role, f"MUSTER_{role.upper()}_PROGRAM")
        argv = [os.environ[variable], "--listen", address, "--nats", ",".join(links), "--replicas",
                len(self.routes), "--lease", f"{LEASE_SECONDS}s", "--drain-grace", "5s",
                "--data-dir", self.data_dir(name), *more]
        self.programs[name] = Program(name, argv, "msg=ready", self.folder)

    def server(self, number=0):
        """Returns where clients reach an initiator."""
        return self.links[f"initiator{number}"].address

    def report(self):
        return self.data_dir("controller") / "report.db"

    def revive(self, tell):
        """Starts what is wanted and does not run; `tell`s of each program that ended by itself."""
        for program in self.programs.values():
            if program.wanted and not program.runs():
                if not program.leaving:
                    tell(program)
                program.start()

    def heal(self):
        """Ends what faults may have left."""
        for disk in self.disks.values():
            (disk / "ballast").unlink(missing_ok=True)
        for link in self.links.values():
            link.mend()
        for program in self.programs.values():
            program.wanted = True
            program.thaw()

    def stop(self):
        """Stops callers before the called; returns the exit codes by name."""
        return {name: self.programs[name].stop() for name in reversed(self.programs)}

    def kill(self):
        """Ends all, and what they have started and mounted."""
        for program in self.programs.values():
            if program.process is not None:
                program.thaw()
                program.kill()
        for link in self.links.values():
            link.close()
        for disk in self.disks.values():
            subprocess.run(["umount", "--lazy", str(disk)], check=False, timeout=30)
