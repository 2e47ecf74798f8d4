#!/usr/bin/env bash
# grpcio 1.85.3 (gRPC for Python): time_remaining() of a call without a deadline is some 9.2e18 seconds in a handler,
# and not None as its documentation says.
#
# Guess: None, "if no deadline was specified for the RPC".
# Seen: for a call with a timeout of 5 s it is some 5.0; for one without, more than 9e18, which is no infinity either.
#
# Who it hurts: a handler that gives itself a default when there is no deadline ("if left is None"), or hands what is
# left to its own calls: as a timeout it is too large for gRPC itself (grpc_python_endless_timeout_is_over_at_once.sh).
set -euo pipefail
work=$(mktemp --directory)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check grpcio==1.85.3
cat > "$work/seen.py" << 'PYTHON'
import concurrent.futures, grpc

remaining = []


def handle(request, context):
    remaining.append(context.time_remaining())
    return request


method = grpc.unary_unary_rpc_method_handler(handle)
server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Service", {"Call": method}),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
call = grpc.insecure_channel(f"127.0.0.1:{port}").unary_unary("/Service/Call")
call(b"request", timeout=5)
call(b"request")
print(round(remaining[0]), "above 9e18" if remaining[1] is not None and 9e18 < remaining[1] < 1e19 else remaining[1])
try:
    call(b"request", timeout=remaining[1])
    print("as a timeout: OK")
except grpc.RpcError as error:
    print("as a timeout:", error.code().name)
server.stop(None)
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py" 2> "$work/log" | paste -s -d ' ') || { cat "$work/log" && exit 1; }
echo "grpcio 1.85.3: left of 5 s and of no deadline: $seen"
[ "$seen" = "5 above 9e18 as a timeout: DEADLINE_EXCEEDED" ]
