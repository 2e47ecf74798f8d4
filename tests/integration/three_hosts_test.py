#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/operations/three_hosts.md, run as it is printed.

Each host is a network namespace on one bridge, with /etc, /var and /usr/local of its own (an overlay
that goes with it). What a page of a real host needs and this machine lacks: `systemctl` is a script
that starts what a unit says, and packages are installed already.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/operations/three_hosts.md"
HANDLER_PAGE = ROOT / "docs/command_handlers.md"
ADDRESSES = {"one": "192.0.2.11", "two": "192.0.2.12", "three": "192.0.2.13"}
BLOCK = re.compile(r"^<!-- on ([\w ]+) -->\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORTS = re.compile(r"^\| `(\w+)` \| (\d+) \|", re.MULTILINE)
FILE = re.compile(r"^<!-- file (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE_SECONDS = 60
NATS_SERVER = os.environ.get("MUSTER_NATS_SERVERS", "nats-server").split(":")[-1]

# Starts what units of deploy/systemd say, or Debian's NATS server; nothing else.
SYSTEMCTL = r'''#!/bin/bash
set -e
for unit in "$@"; do
  case $unit in
    enable | --now | restart) continue ;;
    nats-server)
      "$NATS_SERVER" -c /etc/nats-server.conf > "/run/log/$unit" 2>&1 &
      echo $! > "/run/pids/$unit"
      continue ;;
  esac
  name=${unit#*@}
  file=$UNITS/${unit%@*}.service
  [ "$name" = "$unit" ] || file=$UNITS/${unit%@*}@.service
  command=$(sed -n 's/^ExecStart=//p' "$file" | sed "s|%S|/var/lib|g; s|%i|$name|g; s|^/usr/local/bin|$PROGRAMS|")
  folder=$(sed -n 's/^WorkingDirectory=-*//p' "$file")
  (
    set -a
    while read -r variables; do
      case $variables in
        -*) [ ! -e "${variables#-}" ] || . "${variables#-}" ;;
        *) . "$variables" ;;
      esac
    done < <(sed -n 's/^EnvironmentFile=//p' "$file" | sed "s|%i|$name|g")
    unset MUSTER_SERVER
    mkdir -p /var/lib/muster
    [ -z "$folder" ] || cd "$folder"
    exec $command > "/run/log/$unit" 2>&1
  ) &
  echo $! > "/run/pids/$unit"
done
'''


def able():
    """Whether this user may make network namespaces with file systems of their own."""
    name = f"muster-able-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    except FileNotFoundError:
        return False
    if made.returncode != 0:
        return False
    subprocess.run(["ip", "netns", "del", name], check=True)
    with tempfile.TemporaryDirectory() as folder:
        script = (f"mount -t tmpfs none {folder} && mkdir {folder}/u {folder}/w && "
                  f"mount -t overlay none -o lowerdir=/etc,upperdir={folder}/u,workdir={folder}/w /etc")
        return subprocess.run(["unshare", "-m", "bash", "-c", script],
                              capture_output=True).returncode == 0


class Host:
    """A network namespace with the address of a host of the page."""

    def __init__(self, name, folder, bridge):
        self.name = name
        self.folder = folder / name
        self.folder.mkdir()
        self.namespace = f"{bridge}-{name}"
        self.cable = f"v{os.getpid()}{name[:2]}"
        self.holder = None
        ip = lambda *arguments: subprocess.run(["ip", *arguments], check=True)
        ip("netns", "add", self.namespace)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.namespace)
        ip("link", "set", self.cable, "master", bridge, "up")
        inside = lambda *arguments: ip("-n", self.namespace, *arguments)
        inside("link", "set", "lo", "up")
        inside("addr", "add", f"{ADDRESSES[name]}/24", "dev", "eth0")
        inside("link", "set", "eth0", "up")
        self.begin()

    def begin(self):
        """Starts the process that keeps the host's file systems, and makes them."""
        overlays = "\n".join(
            f"mkdir -p {at}/{part}.u {at}/{part}.w; mount -t overlay none "
            f"-o lowerdir=/{path},upperdir={at}/{part}.u,workdir={at}/{part}.w /{path}"
            for at, part, path in [(self.folder, path.replace("/", "_"), path)
                                   for path in ("etc", "var/lib", "usr/local")])
        script = f"""set -e
            mount -t tmpfs none {self.folder}
            {overlays}
            mount -t tmpfs none /run
            mkdir -p /run/log /run/pids /root
            mount -t tmpfs none /root
            getent group nats > /dev/null || echo nats:x:990: >> /etc/group
            getent passwd nats > /dev/null || echo nats:x:990:990::/nonexistent:/bin/false >> /etc/passwd
            getent group muster > /dev/null || echo muster:x:991: >> /etc/group
            echo up
            exec sleep infinity"""
        self.holder = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, "unshare", "-m", "--propagation", "private",
             "bash", "-c", script], stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "up\n":
            raise AssertionError(f"host {self.name} does not begin")

    def run(self, script, environment, name):
        """Runs what the page prints, in root's folder; answers what it printed."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.holder.pid), "-m", "-n", "bash", "-euo", "pipefail", "-c",
             f"cd /root\n{script}"], env=environment, capture_output=True, text=True,
            timeout=4 * PATIENCE_SECONDS)
        if done.returncode != 0:
            raise AssertionError(f"{name} on {self.name} ended with {done.returncode}:\n{script}\n"
                                 f"{done.stdout}{done.stderr}\n{self.logs()}")
        return done.stdout

    def inside(self, *command, **how):
        return subprocess.run(["nsenter", "-t", str(self.holder.pid), "-m", "-n", *command],
                              capture_output=True, text=True, **how)

    def put(self, name, text):
        self.inside("bash", "-c", f"cat > /root/{name}", input=text)

    def put_folder(self, folder):
        """As scp -r to root's folder."""
        packed = subprocess.run(["tar", "-C", folder.parent, "-c", folder.name], check=True,
                                capture_output=True).stdout
        subprocess.run(["nsenter", "-t", str(self.holder.pid), "-m", "-n", "tar", "-C", "/root", "-x",
                        "--no-same-owner"], input=packed, check=True)

    def logs(self):
        return self.inside("bash", "-c", "tail -n 15 /run/log/* 2> /dev/null").stdout

    def end(self):
        pids = self.inside("bash", "-c", "cat /run/pids/* 2> /dev/null").stdout.split()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        subprocess.run(["ip", "netns", "del", self.namespace], check=False)
        subprocess.run(["ip", "link", "del", self.cable], check=False, capture_output=True)


class ThreeHostsTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="muster-hosts-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.bridge = f"mb{os.getpid()}"
        subprocess.run(["ip", "link", "add", self.bridge, "type", "bridge"], check=True)
        self.addCleanup(subprocess.run, ["ip", "link", "del", self.bridge], check=True)
        subprocess.run(["ip", "link", "set", self.bridge, "up"], check=True)
        self.authority = self.folder / "authority"
        self.authority.mkdir()
        self.environment = self.make_environment()
        self.hosts = {}
        for name in ADDRESSES:
            self.hosts[name] = Host(name, self.folder, self.bridge)
            self.addCleanup(self.hosts[name].end)

    def make_environment(self):
        """Where the programs of this build, and the stand-in for systemctl, come first."""
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "systemctl").write_text(SYSTEMCTL)
        (tools / "systemctl").chmod(0o755)
        for program in ("MUSTER", "MUSTER_INITIATOR_PROGRAM", "MUSTER_CONTROLLER_PROGRAM",
                        "MUSTER_PROCESSOR_PROGRAM"):
            at = pathlib.Path(os.environ[program])
            (tools / at.name).symlink_to(at)
        server = shutil.which(NATS_SERVER, path=os.environ["PATH"] + ":/usr/sbin")
        return {"PATH": f"{tools}:{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": "/root",
                "PROGRAMS": str(tools), "UNITS": str(ROOT / "deploy/systemd"), "LANG": "C.UTF-8",
                "NATS_SERVER": server}

    def run_page(self):
        """Runs the blocks in their order; answers what `one` printed last, block by block."""
        printed = []
        exports = ""
        for where, script in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
            if where == "authority":
                self.sign(script)
                continue
            for name in where.split():
                mine = re.sub(r"\bHOST\b", name, script)
                if "muster doctor" in script:
                    self.await_doctor(exports + "".join(
                        line for line in script.splitlines(True) if line.startswith("export")))
                printed.append(self.hosts[name].run(exports + mine, self.environment, where))
            exports += "".join(line for line in script.splitlines(True) if line.startswith("export"))
        return printed

    def sign(self, script):
        subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.authority, check=True,
                       capture_output=True)
        said = subprocess.run("openssl verify -CAfile authority.pem */cert.pem", shell=True, check=True,
                              cwd=self.authority, capture_output=True, text=True).stdout
        self.assertEqual(said.count(": OK"), 4)
        files = dict(FILE.findall(HANDLER_PAGE.read_text(encoding="utf-8")))
        for name, host in self.hosts.items():
            host.put_folder(self.authority / name)
            for file, text in files.items():
                host.put(file, text)
        self.hosts["one"].put_folder(self.authority / "ops")

    def await_doctor(self, exports):
        """A mesh that was just started needs some seconds until its heartbeats are heard."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            done = self.hosts["one"].inside("bash", "-c", f"cd /root\n{exports}muster doctor",
                                            env=self.environment)
            heard = all(name in done.stdout for name in ("controller", "processor", "initiator"))
            if done.returncode == 0 and heard:
                return
            if time.monotonic() > end:
                logs = "\n".join(host.logs() for host in self.hosts.values())
                self.fail(f"the doctor finds:\n{done.stdout}{done.stderr}\n{logs}")
            time.sleep(0.5)  # no event announces it, so this polls

    def foreign_connections(self):
        """(host, port) of every established connection between two hosts, at the server's end."""
        found = set()
        for name, host in self.hosts.items():
            listening = {line.split()[3].rsplit(":", 1)[1]
                         for line in host.inside("ss", "-Htln").stdout.splitlines()}
            for line in host.inside("ss", "-Htn", "state", "established").stdout.splitlines():
                local, remote = line.split()[2:4]
                port = local.rsplit(":", 1)[1]
                is_foreign = ADDRESSES[name] not in remote and "127.0.0.1" not in remote
                if is_foreign and port in listening:
                    found.add((name, port))
        return found

    def test_the_commands_of_the_page_make_a_sound_mesh_with_tls(self):
        printed = self.run_page()
        report, doctor = printed[-2:]
        self.assertRegex(report, r"bridge +7\.75 +2\n")
        self.assertRegex(report, r"tunnel +6\.75 +2\n")
        self.assertIn("batch 1: 5 transactions = 4 aggregated + 1 rejected", report)
        self.assertNotIn("wrong: ", doctor)
        self.assertIn("ok: job timesheet: processors have handler version 1", doctor)
        allowed = set(PORTS.findall(PAGE.read_text(encoding="utf-8")))
        self.assertEqual(allowed, {("one", "4222"), ("one", "7700"), ("two", "7702"), ("two", "7701"),
                                   ("three", "7701")})
        used = self.foreign_connections()
        self.assertLessEqual(used, allowed)
        self.assertIn(("one", "4222"), used)
        self.assert_nats_takes_none_but_the_hosts()

    def assert_nats_takes_none_but_the_hosts(self):
        """A certificate of the authority that names no host is no user; and none at all is refused."""
        common = "MUSTER_NATS=tls://one.mesh.example.org:4222 MUSTER_NATS_CA=/root/ops/ca.pem"
        for shown, said in (
                ("MUSTER_NATS_CERT=/root/ops/cert.pem MUSTER_NATS_KEY=/root/ops/key.pem", "uthoriz"),
                ("", "ertificate")):
            done = self.hosts["one"].inside(
                "bash", "-c", f"{common} {shown} timeout 5 muster-processor 2>&1", env=self.environment)
            self.assertRegex(done.stdout + done.stderr, said)
            self.assertNotIn("msg=ready", done.stdout)


if __name__ == "__main__":
    if not able():
        print("skipped: this user may not make network namespaces with file systems of their own")
        sys.exit(77)
    unittest.main()
