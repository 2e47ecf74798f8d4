#!/usr/bin/env bash
# grpcio 1.85.3 (gRPC for Python): a call with timeout=float("inf") fails at once with DEADLINE_EXCEEDED. So does one
# with any timeout above some 235 years.
#
# Guess: an infinite timeout is none, and a very long one is very long.
# Seen: without timeout the call is answered, with 1e9 seconds, too. With 1e10 and with infinity it never reaches the
# server. The deadline is the present time plus the timeout in nanoseconds, in 64 bits, which overflow in the year 2262.
#
# Who it hurts: batch code that hands "no limit" through as infinity. All its calls fail, and look like those of a slow
# server.
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


def outcome(timeout):
    try:
        call(b"request", timeout=timeout)
        return "OK"
    except grpc.RpcError as error:
        return error.code().name


print(*(f"{timeout}: {outcome(timeout)}" for timeout in (None, 1e9, 1e10, float("inf"))), f"({len(remaining)} served)")
server.stop(None)
PYTHON
seen=$("$work/venv/bin/python" "$work/seen.py" 2> "$work/log") || { cat "$work/log" && exit 1; }
echo "grpcio 1.85.3: timeout $seen"
[ "$seen" = "None: OK 1000000000.0: OK 10000000000.0: DEADLINE_EXCEEDED inf: DEADLINE_EXCEEDED (2 served)" ]
