# SPDX-License-Identifier: Apache-2.0
"""The azure-storage-queue of this Python, of any version 12, as a client of scenarios_test.py: reads an operation
in JSON from each line of its input, does it by the SDK, and writes what the SDK answers.
CONNECTION names the gateway; with OWN_RETRIES the SDK repeats calls as it does by itself."""

import base64
import datetime
import importlib.metadata
import json
import os
import sys

from azure.core.exceptions import HttpResponseError
from azure.storage.queue import (
    AccessPolicy, AccountSasPermissions, BinaryBase64DecodePolicy, BinaryBase64EncodePolicy, CorsRule,
    QueueAnalyticsLogging, QueueSasPermissions, QueueServiceClient, ResourceTypes, RetentionPolicy,
    TextBase64DecodePolicy, TextBase64EncodePolicy, generate_account_sas, generate_queue_sas)

CONNECTION = os.environ["CONNECTION"]
SETTINGS = dict(pair.split("=", 1) for pair in CONNECTION.split(";") if pair)
POLICIES = {
    "TextBase64": (TextBase64EncodePolicy, TextBase64DecodePolicy),
    "BinaryBase64": (BinaryBase64EncodePolicy, BinaryBase64DecodePolicy),
}


def in_an_hour():
    return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)


def stamp(time):
    """As 2020-01-02T03:04:05Z; the SDK gives the text or the time."""
    return time[:19] + "Z" if isinstance(time, str) else time.strftime("%Y-%m-%dT%H:%M:%SZ")


def service_of(step):
    options = {} if "OWN_RETRIES" in os.environ else {"retry_total": 0}
    if "with" in step:
        return QueueServiceClient(SETTINGS["QueueEndpoint"], step["with"], **options)
    return QueueServiceClient.from_connection_string(CONNECTION, **options)


class Operations:
    """Each method is one operation of the API."""

    def __init__(self, step):
        self.step = step
        self.service = service_of(step)
        if "queue" in step:
            encode, decode = POLICIES.get(step.get("encode"), (None, None))
            options = {"message_encode_policy": encode(), "message_decode_policy": decode()} if encode else {}
            self.queue = self.service.get_queue_client(step["queue"], **options)
            self.is_binary = step.get("encode") == "BinaryBase64"

    def shown(self, message, **more):
        content = message.content
        text = base64.b64encode(content).decode() if self.is_binary else content or ""
        return {"id": message.id, "text": text, "dequeue_count": message.dequeue_count or 0, **more}

    def ListQueues(self):
        pages = [list(page) for page in self.service.list_queues(
            name_starts_with=self.step["prefix"], include_metadata=self.step.get("metadata", False),
            results_per_page=self.step.get("page_size")).by_page()]
        return {"pages": [[queue.name for queue in page] for page in pages],
                "metadata": [queue.metadata for page in pages for queue in page]}

    def GetServiceProperties(self):
        properties = self.service.get_service_properties()
        return {"cors": [{"origins": rule.allowed_origins, "methods": rule.allowed_methods,
                          "max_age": rule.max_age_in_seconds} for rule in properties["cors"]],
                "logging_days": properties["analytics_logging"].retention_policy.days}

    def SetServiceProperties(self):
        self.service.set_service_properties(
            analytics_logging=QueueAnalyticsLogging(
                read=True, retention_policy=RetentionPolicy(enabled=True, days=self.step["logging_days"])),
            cors=[CorsRule([rule["origins"]], [rule["methods"]], max_age_in_seconds=rule["max_age"])
                  for rule in self.step["cors"]])

    def GetServiceStats(self):
        # Of a connection string, the SDK takes the scheme of this address for its host.
        secondary = SETTINGS["QueueSecondaryEndpoint"].split("://")[1]
        service = QueueServiceClient(SETTINGS["QueueEndpoint"], SETTINGS["AccountKey"],
                                     secondary_hostname=secondary, retry_total=0)
        return {"status": service.get_service_stats()["geo_replication"]["status"]}

    def CreateQueue(self):
        self.queue.create_queue(metadata=self.step.get("metadata"))

    def DeleteQueue(self):
        self.queue.delete_queue()

    def GetQueueMetadata(self):
        properties = self.queue.get_queue_properties()
        return {"metadata": properties.metadata, "count": properties.approximate_message_count}

    def SetQueueMetadata(self):
        self.queue.set_queue_metadata(self.step["metadata"])

    def GetQueueAcl(self):
        policies = self.queue.get_queue_access_policy()
        return {"policies": [{"id": name, "permissions": policy.permission, "start": stamp(policy.start),
                              "expiry": stamp(policy.expiry)} for name, policy in policies.items()]}

    def SetQueueAcl(self):
        self.queue.set_queue_access_policy({
            policy["id"]: AccessPolicy(permission=policy["permissions"], start=policy["start"],
                                       expiry=policy["expiry"]) for policy in self.step["policies"]})

    def PutMessage(self):
        text = base64.b64decode(self.step["text"]) if self.is_binary else self.step["text"]
        put = self.queue.send_message(text, time_to_live=self.step.get("ttl"),
                                      visibility_timeout=self.step.get("visibility"))
        return {"id": put.id, "receipt": put.pop_receipt, "expires": put.expires_on.year}

    def GetMessages(self):
        pages = self.queue.receive_messages(messages_per_page=self.step["count"],
                                            visibility_timeout=self.step["visibility"]).by_page()
        return {"messages": [self.shown(m, receipt=m.pop_receipt) for m in next(pages, [])]}

    def PeekMessages(self):
        return {"messages": [self.shown(m) for m in self.queue.peek_messages(self.step["count"])]}

    def UpdateMessage(self):
        updated = self.queue.update_message(self.step["id"], self.step["receipt"], content=self.step["text"],
                                            visibility_timeout=self.step["visibility"])
        return {"receipt": updated.pop_receipt}

    def DeleteMessage(self):
        self.queue.delete_message(self.step["id"], self.step["receipt"])

    def ClearMessages(self):
        self.queue.clear_messages()

    def Version(self):
        return {"version": importlib.metadata.version("azure-storage-queue")}

    def MakeQueueSas(self):
        name, key = SETTINGS["AccountName"], SETTINGS["AccountKey"]
        if "policy" in self.step:
            return {"sas": generate_queue_sas(name, self.step["queue"], key, policy_id=self.step["policy"])}
        permission = QueueSasPermissions.from_string(self.step["permissions"])
        return {"sas": generate_queue_sas(name, self.step["queue"], key, permission=permission,
                                          expiry=in_an_hour())}

    def MakeAccountSas(self):
        return {"sas": generate_account_sas(
            SETTINGS["AccountName"], SETTINGS["AccountKey"], ResourceTypes.from_string(self.step["types"]),
            AccountSasPermissions.from_string(self.step["permissions"]), in_an_hour())}


def answer(step):
    try:
        return getattr(Operations(step), step["do"])() or {}
    except HttpResponseError as error:
        code = error.error_code
        return {"refused": f"{error.status_code} {getattr(code, 'value', code)}"}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
