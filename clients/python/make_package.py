#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a folder that has the whole package, to be put on PYTHONPATH.

    make_package.py FOLDER

The hand-written modules are copied, and protoc writes the others (muster.v1, muster.rpc_details) from
the protos of this repository. `pip install` does the same by setup.py. Needs the Debian packages
protobuf-compiler and protobuf-compiler-grpc.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROTOS = HERE.parents[1] / "proto"
# googleapis-common-protos registers these under their own names, and a process can have each once.
DETAILS = {"google/rpc/status.proto", "google/rpc/error_details.proto"}


def found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        sys.exit(f"{program} is not there: apt-get install protobuf-compiler protobuf-compiler-grpc")
    return path


def run_protoc(source: pathlib.Path, protos: "list[str]", target: pathlib.Path) -> None:
    subprocess.run(
        [found("protoc"), f"--proto_path={source}", f"--python_out={target}", f"--pyi_out={target}",
         f"--plugin=protoc-gen-grpc={found('grpc_python_plugin')}", f"--grpc_out={target}", *protos],
        check=True)


def generate(target: pathlib.Path) -> None:
    """Writes what is made of the protos into `target`."""
    protos = sorted(str(path.relative_to(PROTOS)) for path in (PROTOS / "muster").rglob("*.proto"))
    if not protos:
        sys.exit(f"no protos in {PROTOS}: build from a clone of muster's repository")
    run_protoc(PROTOS, protos, target)
    with tempfile.TemporaryDirectory() as folder:
        renamed = pathlib.Path(folder)
        names = []
        for proto in sorted(DETAILS):
            name = "muster/rpc_details/" + pathlib.Path(proto).name
            text = (PROTOS / proto).read_text(encoding="utf-8")
            (renamed / name).parent.mkdir(parents=True, exist_ok=True)
            (renamed / name).write_text(
                text.replace("package google.rpc;", "package muster.rpc_details;"), encoding="utf-8")
            names.append(name)
        run_protoc(renamed, names, target)
    for package in ("v1", "rpc_details"):
        (target / "muster" / package / "__init__.py").touch()
    # They have no services: what the plugin writes for them is empty.
    for empty in (target / "muster").rglob("*_pb2_grpc.py"):
        if "Stub(" not in empty.read_text(encoding="utf-8"):
            empty.unlink()


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[1])
    shutil.rmtree(target / "muster", ignore_errors=True)
    shutil.copytree(HERE / "src/muster", target / "muster",
                    ignore=shutil.ignore_patterns("__pycache__"))
    generate(target)


if __name__ == "__main__":
    main()
