# SPDX-License-Identifier: Apache-2.0
"""Writes an OCI image layout in a tar (image-spec 1.0): one layer, one image."""

import gzip
import hashlib
import io
import json
import os
import tarfile

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Archive:
    def __init__(self, path, epoch):
        self.tar = tarfile.open(path, "w")
        self.epoch = epoch

    def add(self, name, data):
        info = tarfile.TarInfo(name)
        info.size, info.mtime = len(data), self.epoch
        self.tar.addfile(info, io.BytesIO(data))

    def add_blob(self, media_type, data):
        digest = hashlib.sha256(data).hexdigest()
        self.add(f"blobs/sha256/{digest}", data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def close(self):
        self.tar.close()


def full_name(name):
    """As containerd writes it out. Kubernetes looks for `muster` by the name docker.io/library/muster, and does not
    find an image that was imported by the short one."""
    first, slash, _ = name.partition("/")
    if slash and (set(".:") & set(first) or first == "localhost"):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


def write_archive(path, layer, *, config, labels, name, tag, created, epoch, level=9):
    """Writes the image NAME:TAG whose only layer is that tar. Returns the size of the compressed layer."""
    archive = Archive(path, epoch)
    compressed = archive.add_blob("application/vnd.oci.image.layer.v1.tar+gzip",
                                  gzip.compress(layer, level, mtime=0))
    described = archive.add_blob("application/vnd.oci.image.config.v1+json", json.dumps({
        "created": created, "architecture": ARCHITECTURES[os.uname().machine], "os": "linux",
        "config": {**config, "Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
    }, sort_keys=True).encode())
    manifest = archive.add_blob("application/vnd.oci.image.manifest.v1+json", json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described, "layers": [compressed], "annotations": labels}, sort_keys=True).encode())
    manifest["annotations"] = {"org.opencontainers.image.ref.name": tag,
                               "io.containerd.image.name": f"{full_name(name)}:{tag}"}
    archive.add("index.json", json.dumps({
        "schemaVersion": 2, "manifests": [manifest]}, sort_keys=True).encode())
    archive.add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
    archive.close()
    return compressed["size"]
