# SPDX-License-Identifier: Apache-2.0
"""A reader of racing_readers_test.py: receives and deletes until the queue is empty, over several connections.

    racing_reader.py ADDRESS QUEUE SAS LEASE_SECONDS LOG

LOG gets `S ID COUNT TEXT` of each message before its delete is sent, and `D ID COUNT` once the delete is answered 204,
so that a reader may be killed anywhere. Each line of the output tells that messages were deleted. Ends with 0 when
the queue is empty, and with GONE when the gateway is."""

import os
import re
import sys
import threading

from pipelined_client import PipelinedClient

CONNECTIONS = 32
GONE = 3
MESSAGE = re.compile(
    rb"<MessageId>([^<]+)</MessageId>.*?<PopReceipt>([^<]+)</PopReceipt>.*?"
    rb"<DequeueCount>(\d+)</DequeueCount><MessageText>([^<]*)</MessageText>", re.S)


def read(client, lease, log):
    while True:
        [(status, body)] = client.ask([client.request("GET", query=f"numofmessages=32&visibilitytimeout={lease}&")])
        if status != 200:
            raise AssertionError(f"a get was answered {status}: {body}")
        messages = [tuple(part.decode() for part in found) for found in MESSAGE.findall(body)]
        if not messages:
            return
        os.write(log, "".join(f"S {name} {count} {text}\n" for name, _, count, text in messages).encode())
        answers = client.ask([client.request("DELETE", f"/{name}", f"popreceipt={receipt}&")
                              for name, receipt, _, _ in messages])
        # 400 and 404: the lease was over, and another reader has the message, or has deleted it.
        wrong = [status for status, _ in answers if status not in (204, 400, 404)]
        if wrong:
            raise AssertionError(f"a delete was answered {wrong[0]}")
        os.write(log, "".join(f"D {name} {count}\n" for (name, _, count, _), (status, _) in
                              zip(messages, answers) if status == 204).encode())
        os.write(1, b"\n" * len(messages))


def work(address, queue, sas, lease, log):
    try:
        client = PipelinedClient(address, queue, sas)
        read(client, lease, log)
        client.close()
    except OSError:
        os._exit(GONE)
    except AssertionError as wrong:
        print(wrong, file=sys.stderr)
        os._exit(1)


def main():
    address, queue, sas, lease, log = sys.argv[1:]
    log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    threads = [threading.Thread(target=work, args=(address, queue, sas, lease, log)) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


main()
