# SPDX-License-Identifier: Apache-2.0
"""Prints each request that the storage service's Python client makes of a queue, one JSON object in
each line. Run it by a Python that has azure-storage-queue."""

import datetime
import json

import azure.core.pipeline.transport as transport
from azure.storage.queue import (AccessPolicy, AccountSasPermissions, QueueSasPermissions,
                                 QueueServiceClient, ResourceTypes, generate_account_sas,
                                 generate_queue_sas)

import judging

PATH_STYLE = "http://127.0.0.1:10001/sally"
HOST_STYLE = "https://sally.queue.localhost"
METADATA = {"Owner": "Sally", "a_b": "1", "ab": "two  words", "a1": "x"}


class Captured(Exception):
    pass


class Capture(transport.HttpTransport):
    """Keeps the requests that it is given to send, and sends none."""

    def __init__(self):
        self.request = None

    def open(self):
        pass

    def close(self):
        pass

    def __exit__(self, *args):
        pass

    def send(self, request, **kwargs):
        self.request = request
        raise Captured


def operations(service):
    queue = service.get_queue_client("my-queue")
    message = "6012a834-f3cf-410f-bddd-dc29ee36de2a"
    receipt = "AgAAAAMAAAAAAAAA+w/x=="
    policy = {"readers": AccessPolicy(permission="r", expiry="2030-01-01T00:00:00Z")}
    return [
        ("ListQueues", lambda: list(service.list_queues(name_starts_with="a b&c", include_metadata=True))),
        ("GetServiceProperties", service.get_service_properties),
        ("SetServiceProperties", lambda: service.set_service_properties(cors=[])),
        ("GetServiceStats", service.get_service_stats),
        ("CreateQueue", lambda: queue.create_queue(metadata=METADATA)),
        ("DeleteQueue", queue.delete_queue),
        ("GetQueueMetadata", queue.get_queue_properties),
        ("SetQueueMetadata", lambda: queue.set_queue_metadata(METADATA)),
        ("GetQueueAcl", queue.get_queue_access_policy),
        ("SetQueueAcl", lambda: queue.set_queue_access_policy(policy)),
        ("PutMessage", lambda: queue.send_message("größe 漢 <&>", visibility_timeout=5, time_to_live=-1)),
        ("GetMessages", lambda: list(queue.receive_messages(messages_per_page=32, timeout=7))),
        ("PeekMessages", lambda: queue.peek_messages(max_messages=5)),
        ("UpdateMessage", lambda: queue.update_message(message, receipt, content="x", visibility_timeout=0)),
        ("DeleteMessage", lambda: queue.delete_message(message, receipt)),
        ("ClearMessages", queue.clear_messages),
    ]


def emit(url, credential, without="-", only=None, policies=()):
    capture = Capture()
    service = QueueServiceClient(url, credential=credential, transport=capture,
                                 secondary_hostname=secondary(url))
    for name, call in operations(service):
        if without in name or (only is not None and name not in only):
            continue
        try:
            call()
            raise AssertionError(f"{name} sent nothing")
        except Captured:
            pass
        request = capture.request
        headers = list(request.headers.items())
        known = {header.lower() for header, _ in headers}
        if request.method in ("PUT", "POST") and "content-length" not in known:
            headers.append(("Content-Length", "0"))  # by the library that would send it
        print(json.dumps(judging.request_of(request.method, request.url, headers, name, policies)))


def secondary(url):
    return url.split("//")[1].replace("sally", "sally-secondary")


def main():
    now = datetime.datetime.now(datetime.timezone.utc)
    soon, before = now + datetime.timedelta(hours=1), now - datetime.timedelta(minutes=15)
    for url in (PATH_STYLE, HOST_STYLE):
        for key in judging.KEYS:
            emit(url, {"account_name": "sally", "account_key": key})
    every = AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True,
                                  create=True, update=True, process=True)
    sas = generate_account_sas("sally", judging.KEYS[0],
                               ResourceTypes(service=True, container=True, object=True), every, soon,
                               start=before, ip="127.0.0.1-127.0.0.9", protocol="https,http")
    emit(PATH_STYLE, sas, without="Acl")
    of_messages = ["GetQueueMetadata", "PutMessage", "GetMessages", "PeekMessages", "UpdateMessage", "DeleteMessage"]
    raup = QueueSasPermissions(read=True, add=True, update=True, process=True)
    sas = generate_queue_sas("sally", "my-queue", judging.KEYS[1], raup, soon, ip="127.0.0.1", protocol="https")
    emit(HOST_STYLE, sas, only=of_messages)
    sas = generate_queue_sas("sally", "my-queue", judging.KEYS[1], policy_id="rea ders+1")
    emit(HOST_STYLE, sas, only=of_messages, policies=[("rea ders+1", "", "2099-01-01T00:00:00.0000000Z", "raup")])


main()
