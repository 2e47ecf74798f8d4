# SPDX-License-Identifier: Apache-2.0
"""A disk of a given size for a test: a tmpfs in a mount namespace of the test's own."""

import os
import subprocess
import sys

INSIDE = "MUSTER_TEST_IN_A_NAMESPACE"
SKIPPED = 77


def enter_a_namespace():
    """Runs this program again inside a namespace where it may mount; returns only there. Ends with 77 (skipped)
    where the kernel allows no such namespace."""
    if INSIDE in os.environ:
        return
    for flags in ("-m", "-Urm"):
        able = subprocess.run(["unshare", flags, "mount", "-t", "tmpfs", "none", "/mnt"],
                              capture_output=True, text=True, timeout=30)
        if able.returncode == 0:
            os.environ[INSIDE] = "yes"
            os.execvp("unshare", ["unshare", flags, sys.executable, *sys.argv])
    print(f"skipped: no mount namespace: {able.stderr.strip()}", flush=True)
    sys.exit(SKIPPED)


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True, timeout=30)


class SmallDisk:

    def __init__(self, path, size):
        """Mounts it at `path`, a pathlib.Path."""
        self.path = path
        self.path.mkdir()
        mount("-t", "tmpfs", "-o", f"size={size}", "none", self.path)

    def unmount(self):
        subprocess.run(["umount", "--lazy", str(self.path)], check=True, timeout=30)

    def remount(self, option):
        """With "ro" or "size=BYTES"."""
        mount("-o", f"remount,{option}", self.path)

    def leave_free(self, kibibytes):
        """Fills it, until make_room()."""
        there = os.statvfs(self.path)
        with (self.path / "ballast").open("wb") as ballast:
            ballast.write(b"\0" * (there.f_bavail * there.f_frsize - (kibibytes << 10)))

    def make_room(self):
        (self.path / "ballast").unlink()
