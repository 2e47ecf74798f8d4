#!/usr/bin/env bash
# achkit 0.2.0 (NACHA files for Python): of the number of the company only the digits are written. A company
# "ACMEUS0042" is 0000000042, and one without digits is 0000000000.
#
# Guess: ACMEUS0042. The field is alphanumeric in NACHA, and the code has a way for letters, which is never taken.
# Seen: 0000000042 and 0000000000 in the header of the batch and in its trailer. If the batch, and not the file, names
# the company, its letters stay.
#
# Who it hurts: companies to which their bank gave a number with letters: the file is valid and of another company.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check achkit==0.2.0
cat > "$work/seen.py" << 'PYTHON'
from achkit import AchFile


def company(of_file, of_batch=None):
    file = AchFile.create("081000032", of_file, origin_name="Sender")
    batch = file.batch("CCD", "Payment", "2026-12-31", company_id=of_batch)
    batch.credit("Target", "081000210", "135792468", 12345)
    lines = {line[0]: line for line in file.render().splitlines()}
    return f"{lines['5'][40:50]} {lines['8'][44:54]}"


print(company("ACMEUS0042"), company("ACMECORPUS"), company("ACMEUS0042", "ACMEUS0042"), sep=", ")
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py")
echo "achkit 0.2.0, ACMEUS0042, ACMECORPUS, and ACMEUS0042 given to the batch: $seen"
[ "$seen" = "0000000042 0000000042, 0000000000 0000000000, ACMEUS0042 ACMEUS0042" ]
