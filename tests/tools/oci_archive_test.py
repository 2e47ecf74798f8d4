#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What scripts/lib/oci_archive.py writes: the digests fit, and Kubernetes finds the image by its name."""

import gzip
import hashlib
import json
import pathlib
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts/lib"))
import oci_archive  # noqa: E402


class ArchiveTest(unittest.TestCase):
    def files_of(self, name):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "image.tar"
            oci_archive.write_archive(path, b"a layer", config={}, labels={}, name=name, tag="1",
                                      created="2026-01-01T00:00:00Z", epoch=1)
            with tarfile.open(path) as tar:
                return {member.name: tar.extractfile(member).read() for member in tar}

    def name_in_archive_of(self, name):
        [manifest] = json.loads(self.files_of(name)["index.json"])["manifests"]
        return manifest["annotations"]["io.containerd.image.name"]

    def test_a_short_name_is_written_out_as_kubernetes_looks_for_it(self):
        self.assertEqual(self.name_in_archive_of("muster"), "docker.io/library/muster:1")
        self.assertEqual(self.name_in_archive_of("team/muster"), "docker.io/team/muster:1")

    def test_a_name_with_a_registry_stays(self):
        for name in ("muster.test/pause", "localhost/muster", "localhost:5000/muster"):
            self.assertEqual(self.name_in_archive_of(name), f"{name}:1")

    def test_every_blob_has_the_name_of_its_digest_and_the_layer_is_whole(self):
        files = self.files_of("muster")
        blobs = {name: data for name, data in files.items() if name.startswith("blobs/")}
        for name, data in blobs.items():
            self.assertEqual(name, f"blobs/sha256/{hashlib.sha256(data).hexdigest()}")
        self.assertIn(b"a layer", [gzip.decompress(data) for data in blobs.values() if data[:2] == b"\x1f\x8b"])


if __name__ == "__main__":
    unittest.main()
