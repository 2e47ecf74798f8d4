#!/usr/bin/env python3
"""A handler that is a server: adds up what each customer spent.

    python3 -m venv venv && venv/bin/pip install grpcio grpcio-tools
    venv/bin/python server.py    # listens on localhost:7800
    muster run job.yaml --input purchases.csv

docs/grpc_handlers.md is the contract.
"""

import concurrent.futures
import decimal
import pathlib
import re
import sys

import grpc

# grpcio-tools makes modules of the protos as they are imported.
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "proto"))
protos, services = grpc.protos_and_services("muster/v1/handler_service.proto")
result_protos = grpc.protos("muster/v1/item_result.proto")

VERSION = "1"  # to be changed whenever the results may change; job.yaml says the same
AMOUNT = re.compile(r"[-+]?[0-9]{1,15}(\.[0-9]{1,2})?")


def amount_of(text):
    """The exact amount in `text`; ValueError: it is none. decimal alone takes "1e2" for one."""
    if AMOUNT.fullmatch(text) is None:
        raise ValueError(f"amount: not an amount: '{text}'")
    return decimal.Decimal(text)


def total(item, columns):
    """The answer to a work item: a row per customer, and the lines that make no sense."""
    customer, amount = columns.index("customer"), columns.index("amount")
    sums, rejected = {}, []
    for transaction in item.transactions:
        try:
            spent = amount_of(transaction.fields[amount])
        except ValueError as why:
            rejected.append(result_protos.Rejection(line=transaction.line, reason=str(why)))
            continue
        before, count = sums.get(transaction.fields[customer], (decimal.Decimal(0), 0))
        sums[transaction.fields[customer]] = (before + spent, count + 1)
    rows = [result_protos.PartialRow(keys=[name], measures=[f"{spent:f}", str(count)])
            for name, (spent, count) in sums.items()]
    group = result_protos.GroupPartial(group="by_customer", rows=rows)
    result = protos.HandlerResult(groups=[group], rejected=rejected)
    return protos.HandlerAnswer(item=item.item, ok=result)


class Totals(services.HandlerServiceServicer):
    def Work(self, requests, context):
        hello = next(requests).hello
        columns = list(hello.schema.columns)
        if hello.protocol_version != 1 or not {"customer", "amount"} <= set(columns):
            context.abort(grpc.StatusCode.FAILED_PRECONDITION,
                          "server.py speaks version 1, of jobs with customer and amount")
        ready = protos.Ready(name="server.py", version=VERSION, concurrency=1)
        yield protos.WorkResponse(ready=ready)
        for request in requests:  # ends when the processor leaves
            if request.HasField("item"):
                yield protos.WorkResponse(answer=total(request.item, columns))


def main():
    address = sys.argv[1] if len(sys.argv) > 1 else "localhost:7800"
    # A call keeps a thread as long as its processor works for the job.
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=64))
    services.add_HandlerServiceServicer_to_server(Totals(), server)
    port = server.add_insecure_port(address)
    server.start()
    print(f"listening on port {port}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
