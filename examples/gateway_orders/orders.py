#!/usr/bin/env python3
"""Orders go out and invoices come back, with nothing but Azure's SDK (pip install azure-storage-queue):

    orders.py put ORDER ITEM=UNITS...     puts an order
    orders.py invoices N                  waits for N invoices, and prints them

AZURE_STORAGE_CONNECTION_STRING says where; without it, on this machine at port 10001."""

import contextlib
import json
import os
import sys

from azure.core.exceptions import ResourceExistsError
from azure.storage.queue import QueueServiceClient

# A get waits up to twenty seconds for a message. The server leases an order to a worker for so long;
# if the worker dies, the order comes again.
METADATA = {"muster-longpoll": "20", "muster-visibility": "30s"}


def put(queue, name, *lines):
    order = {"order": name, "lines": []}
    for line in lines:
        item, _, units = line.partition("=")
        order["lines"].append({"item": item, "units": int(units)})
    queue.send_message(json.dumps(order))


def print_invoices(queue, count):
    while count > 0:
        for message in queue.receive_messages(max_messages=count):
            invoice = json.loads(message.content)
            print(f"{invoice['order']}: {invoice['total']}", flush=True)
            queue.delete_message(message)
            count -= 1


def main(command, *arguments):
    service = QueueServiceClient.from_connection_string(
        os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true"))
    orders = service.get_queue_client("orders")
    invoices = service.get_queue_client("invoices")
    for queue in (orders, invoices):
        with contextlib.suppress(ResourceExistsError):
            queue.create_queue(metadata=METADATA)
    if command == "put":
        put(orders, *arguments)
    elif command == "invoices":
        print_invoices(invoices, int(arguments[0]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
