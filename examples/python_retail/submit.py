#!/usr/bin/env python3
"""Submits a retail file to a mesh, waits for it, and prints what was counted.

    ./submit.py INPUT.csv [JOB.yaml]

MUSTER_SERVER is the initiator's HOST:PORT. Stopped, the same command goes on where it was.
"""

import os
import pathlib
import sys

import muster


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    definition = pathlib.Path(__file__).with_name("job.yaml")
    if len(sys.argv) > 2:
        definition = pathlib.Path(sys.argv[2])
    with muster.Client(os.environ.get("MUSTER_SERVER", "localhost:7700")) as client:
        try:
            job = client.apply_job(definition)
        except muster.InvalidJob as refused:
            sys.exit("\n".join(map(str, refused.problems)))
        batch = client.wait(client.submit(job.name, sys.argv[1], progress=show), timeout=600)
        print(f"batch {batch.number}: {batch.aggregated} of {batch.transactions} transactions in "
              f"{batch.seconds:.1f} s")
        for row in client.report(batch, "by_country_month"):
            print(row.keys["month"], row.keys["country"], row.measures["revenue"], sep="\t")
        print(client.receipt(batch).checksum)


def show(progress: muster.SubmitProgress) -> None:
    if progress.size:
        print(f"batch {progress.batch}: {progress.durable / progress.size:.0%} is there",
              file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except (OSError, muster.MusterError) as wrong:
        sys.exit(f"submit.py: {wrong}")
