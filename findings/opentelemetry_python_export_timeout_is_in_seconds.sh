#!/usr/bin/env bash
# opentelemetry-exporter-otlp-proto-http 1.45.2 (for Python): OTEL_EXPORTER_OTLP_TIMEOUT counts seconds. OpenTelemetry's
# specification has milliseconds, and so do its SDKs for other languages.
#
# Guess: OTEL_EXPORTER_OTLP_TIMEOUT=3 gives up after three milliseconds, and 10000 after ten seconds, the default.
# Seen: with a collector that accepts the connection and does not answer, an export with 3 fails after three seconds.
# 10000 is two hours and three quarters.
#
# Who it hurts: one setting for all services of a cluster. With 10000, a service in Python waits for hours for a
# collector that hangs, and its later spans are lost.
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --no-compile --disable-pip-version-check \
  opentelemetry-exporter-otlp-proto-http==1.45.2
cat > "$work/seen.py" << 'PYTHON'
import logging, socket, time
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

logging.disable()
collector = socket.create_server(("127.0.0.1", 0))
exporter = OTLPSpanExporter(endpoint=f"http://127.0.0.1:{collector.getsockname()[1]}/v1/traces")
start = time.monotonic()
result = exporter.export([])
print(result.name, "late" if time.monotonic() - start > 2.5 else "early")
PYTHON
seen=$(OTEL_EXPORTER_OTLP_TIMEOUT=3 "$work/venv/bin/python" "$work/seen.py")
echo "an export with OTEL_EXPORTER_OTLP_TIMEOUT=3: $seen"
[ "$seen" = "FAILURE late" ]
