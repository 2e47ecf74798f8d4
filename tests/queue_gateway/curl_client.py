# SPDX-License-Identifier: Apache-2.0
"""curl as a client of scenarios_test.py: each operation by its REST form, one process of curl for each request."""

import subprocess
import urllib.parse
import xml.etree.ElementTree
from xml.sax.saxutils import escape

import gateway

ACCOUNT = gateway.ACCOUNT


class CurlClient:

    def __init__(self, address):
        self.address = address

    def close(self):
        pass

    def call(self, step):
        if "encode" in step:
            return {"lacks": step["encode"]}
        if step["do"].startswith("Make"):
            return {"lacks": step["do"]}
        return Operations(self.address, step).answer()


class Refused(Exception):
    pass


class Operations:
    """Each method is one operation of the API."""

    def __init__(self, address, step):
        self.address = address
        self.step = step
        self.at = "/" + step.get("queue", "")

    def answer(self):
        try:
            return getattr(self, self.step["do"])() or {}
        except Refused as refused:
            return {"refused": str(refused)}

    def ask(self, method, path, body=None, metadata=(), account=ACCOUNT):
        """The headers and the body of a reply."""
        path = f"/{account}{path}"
        headers = {f"x-ms-meta-{name}": value for name, value in dict(metadata).items()}
        if body is not None:
            headers["Content-Type"] = "application/xml"
        headers = gateway.signed_headers(method, path, (body or "").encode(), headers=headers)
        command = ["curl", "--silent", "--show-error", "--noproxy", "*", "--request", method,
                   "--dump-header", "/dev/stderr", f"http://{self.address}{path}"]
        for name, value in headers.items():
            command += ["--header", f"{name}: {value}"]
        if body is not None:
            command += ["--data-binary", "@-"]
        done = subprocess.run(command, input=(body or "").encode(), capture_output=True, check=True,
                              timeout=gateway.TIMEOUT_SECONDS)
        return self.read(done.stderr.decode(), done.stdout.decode())

    @staticmethod
    def read(headers, body):
        # Before it sends a long body, curl asks whether it may: that answer comes first.
        last = headers.strip().split("\r\n\r\n")[-1].split("\r\n")
        named = dict(line.split(": ", 1) for line in last[1:])
        status = int(last[0].split()[1])
        if status >= 400:
            raise Refused(f"{status} {named['x-ms-error-code']}")
        return named, xml.etree.ElementTree.fromstring(body) if body else None

    def ListQueues(self):
        found, marker = {"pages": [], "metadata": []}, ""
        query = f"/?comp=list&prefix={self.step['prefix']}&maxresults={self.step['page_size']}"
        query += "&include=metadata" if self.step.get("metadata") else ""
        while True:
            _, page = self.ask("GET", f"{query}&marker={urllib.parse.quote(marker)}" if marker else query)
            queues = page.findall("Queues/Queue")
            found["pages"].append([queue.findtext("Name") for queue in queues])
            found["metadata"] += [{item.tag: item.text for item in queue.findall("Metadata/*")}
                                  for queue in queues]
            marker = page.findtext("NextMarker")
            if not marker:
                return found

    def GetServiceProperties(self):
        _, found = self.ask("GET", "/?restype=service&comp=properties")
        return {"cors": [{"origins": rule.findtext("AllowedOrigins"),
                          "methods": rule.findtext("AllowedMethods"),
                          "max_age": int(rule.findtext("MaxAgeInSeconds"))}
                         for rule in found.findall("Cors/CorsRule")],
                "logging_days": int(found.findtext("Logging/RetentionPolicy/Days"))}

    def SetServiceProperties(self):
        rules = "".join(
            f"<CorsRule><AllowedOrigins>{rule['origins']}</AllowedOrigins>"
            f"<AllowedMethods>{rule['methods']}</AllowedMethods><AllowedHeaders/><ExposedHeaders/>"
            f"<MaxAgeInSeconds>{rule['max_age']}</MaxAgeInSeconds></CorsRule>" for rule in self.step["cors"])
        self.ask("PUT", "/?restype=service&comp=properties",
                 "<StorageServiceProperties><Logging><Version>1.0</Version><Delete>false</Delete>"
                 "<Read>true</Read><Write>false</Write><RetentionPolicy><Enabled>true</Enabled>"
                 f"<Days>{self.step['logging_days']}</Days></RetentionPolicy></Logging>"
                 f"<Cors>{rules}</Cors></StorageServiceProperties>")

    def GetServiceStats(self):
        _, found = self.ask("GET", "/?restype=service&comp=stats", account=f"{ACCOUNT}-secondary")
        return {"status": found.findtext("GeoReplication/Status")}

    def CreateQueue(self):
        self.ask("PUT", self.at, metadata=self.step.get("metadata", {}))

    def DeleteQueue(self):
        self.ask("DELETE", self.at)

    def GetQueueMetadata(self):
        headers, _ = self.ask("GET", self.at + "?comp=metadata")
        prefix = "x-ms-meta-"
        return {"metadata": {name[len(prefix):]: value for name, value in headers.items()
                             if name.startswith(prefix)},
                "count": int(headers["x-ms-approximate-messages-count"])}

    def SetQueueMetadata(self):
        self.ask("PUT", self.at + "?comp=metadata", metadata=self.step["metadata"])

    def GetQueueAcl(self):
        _, found = self.ask("GET", self.at + "?comp=acl")

        def stamp(time):
            return time[:19] + "Z"
        return {"policies": [{"id": one.findtext("Id"),
                              "permissions": one.findtext("AccessPolicy/Permission"),
                              "start": stamp(one.findtext("AccessPolicy/Start")),
                              "expiry": stamp(one.findtext("AccessPolicy/Expiry"))}
                             for one in found.findall("SignedIdentifier")]}

    def SetQueueAcl(self):
        policies = "".join(
            f"<SignedIdentifier><Id>{one['id']}</Id><AccessPolicy><Start>{one['start']}</Start>"
            f"<Expiry>{one['expiry']}</Expiry><Permission>{one['permissions']}</Permission></AccessPolicy>"
            "</SignedIdentifier>" for one in self.step["policies"])
        self.ask("PUT", self.at + "?comp=acl", f"<SignedIdentifiers>{policies}</SignedIdentifiers>")

    def document(self):
        return f"<QueueMessage><MessageText>{escape(self.step['text'])}</MessageText></QueueMessage>"

    def PutMessage(self):
        query = "&".join(f"{name}={self.step[key]}" for key, name in
                         [("ttl", "messagettl"), ("visibility", "visibilitytimeout")] if key in self.step)
        _, put = self.ask("POST", f"{self.at}/messages" + (f"?{query}" if query else ""), self.document())
        return {"id": put.findtext("*/MessageId"), "receipt": put.findtext("*/PopReceipt"),
                "expires": int(put.findtext("*/ExpirationTime").split()[3])}

    def messages(self, query):
        _, found = self.ask("GET", f"{self.at}/messages?{query}&numofmessages={self.step['count']}")
        return {"messages": [{"id": one.findtext("MessageId"), "receipt": one.findtext("PopReceipt"),
                              "text": one.findtext("MessageText"),
                              "dequeue_count": int(one.findtext("DequeueCount"))}
                             for one in found.findall("QueueMessage")]}

    def GetMessages(self):
        return self.messages(f"visibilitytimeout={self.step['visibility']}")

    def PeekMessages(self):
        return self.messages("peekonly=true")

    def message(self, query=""):
        receipt = urllib.parse.quote(self.step["receipt"], safe="")
        return f"{self.at}/messages/{self.step['id']}?popreceipt={receipt}{query}"

    def UpdateMessage(self):
        headers, _ = self.ask("PUT", self.message(f"&visibilitytimeout={self.step['visibility']}"),
                              self.document())
        return {"receipt": headers["x-ms-popreceipt"]}

    def DeleteMessage(self):
        self.ask("DELETE", self.message())

    def ClearMessages(self):
        self.ask("DELETE", f"{self.at}/messages")
