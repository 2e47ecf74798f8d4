#!/usr/bin/env bash
# opentelemetry-api 1.45.2 (for Python): baggage has + for a space, and a space for +, which other languages do not
# share. @opentelemetry/core 2.12.1 (for JavaScript) reads and writes them as the W3C's recommendation has them.
#
# Guess: baggage is percent-encoded, so that a space is %20 and + is itself, and each SDK reads what another has
# written.
# Seen: Python sends "night run" as night+run, which JavaScript reads as "night+run". A sender that leaves the + of
# 2026-11-29T00:00+01:00 as it is, as it may, reaches Python as "2026-11-29T00:00 01:00".
#
# Who it hurts: whoever groups by a tenant, a batch or a time that travels as baggage: the services in Python and those
# in other languages count the same one under two names.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check opentelemetry-api==1.45.2
npm install --silent --prefix "$work/node" @opentelemetry/core@2.12.1 @opentelemetry/api@1.9.1
cat > "$work/seen.py" << 'PYTHON'
import sys
from opentelemetry import baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator

headers = {}
W3CBaggagePropagator().inject(headers, baggage.set_baggage("batch", "night run"))
print(headers["baggage"], baggage.get_all(W3CBaggagePropagator().extract({"baggage": sys.argv[1]}))["batch"], sep="|")
PYTHON
cat > "$work/node/seen.mjs" << 'PROGRAM'
import { W3CBaggagePropagator } from "@opentelemetry/core";
import { ROOT_CONTEXT, defaultTextMapGetter, propagation } from "@opentelemetry/api";

for (const header of process.argv.slice(2)) {
  const context = new W3CBaggagePropagator().extract(ROOT_CONTEXT, { baggage: header }, defaultTextMapGetter);
  console.log(propagation.getBaggage(context).getEntry("batch").value);
}
PROGRAM
time='batch=2026-11-29T00:00+01:00'
python=$("$work/venv/bin/python" "$work/seen.py" "$time")
javascript=$(node "$work/node/seen.mjs" "${python%%|*}" "$time" | paste -s -d '|')
echo "Python writes 'night run' and reads $time: $python; JavaScript reads both: $javascript"
[ "$python" = "batch=night+run|2026-11-29T00:00 01:00" ]
[ "$javascript" = "night+run|2026-11-29T00:00+01:00" ]
