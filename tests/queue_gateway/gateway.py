# SPDX-License-Identifier: Apache-2.0
"""What the tests of muster-queue-gateway share: the program, and requests that are signed here, by the
published rules, with nothing of muster's.

MUSTER_GATEWAY_ENGINE is where the queues are: "rocksdb", the gateway's data directory, or "jetstream" and
"newest-jetstream", the first and the last server that MUSTER_NATS_SERVERS names."""

import base64
import concurrent.futures
import contextlib
import email.utils
import hashlib
import hmac
import http.client
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import xml.etree.ElementTree

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import mesh  # noqa: E402: from the folder above

GATEWAY = os.environ["MUSTER_QUEUE_GATEWAY"]
ACCOUNT = "devstoreaccount1"
# The published key of the development account, as every client has it built in.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "2021-12-02"
TIMEOUT_SECONDS = 60
CREATORS = 16  # of queues, at a time
SKIPPED = 77  # the exit code of a test program that could not run, as its ctest knows
ENGINE = os.environ.get("MUSTER_GATEWAY_ENGINE", "rocksdb")
ON_NATS = ENGINE != "rocksdb"
if ENGINE == "newest-jetstream" and len(mesh.NATS_SERVERS) == 1:
    print("skipped: MUSTER_NATS_SERVERS names one server only", file=sys.stderr)
    sys.exit(SKIPPED)


def skip(why):
    """Ends the test program."""
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(SKIPPED)


def run_by_the_python_of_azure():
    """Runs this program again by the Python that MUSTER_AZURE_PYTHON names, if it names one, as that has the SDK."""
    python = os.environ.get("MUSTER_AZURE_PYTHON")
    if python and os.path.abspath(sys.executable) != os.path.abspath(python) and \
            "MUSTER_AZURE_PYTHON_STARTED" not in os.environ:
        os.environ["MUSTER_AZURE_PYTHON_STARTED"] = "1"
        os.execv(python, [python, *sys.argv])


def nats_program():
    """That of the server that ENGINE names. Debian has one where only root looks."""
    program = mesh.NATS_SERVERS[-1 if ENGINE == "newest-jetstream" else 0]
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")


class NatsServer(mesh.Program):
    """With its own store."""

    def __init__(self, folder):
        self.address = mesh.free_address()
        host, port = self.address.split(":")
        super().__init__([nats_program(), "-js", "-sd", folder / "nats", "-a", host, "-p", port],
                         "Server is ready")
        self.await_ready()

    def arguments(self):
        return ["--nats", f"nats://{self.address}"]


class Gateway:
    """A running gateway, on a port of its own unless told one."""

    def __init__(self, data_dir, *arguments, listen="127.0.0.1:0", wait=True, failpoint="", metrics=""):
        """`failpoint`: where it dies (muster/base/failpoint.h). `metrics`: what MUSTER_METRICS says; None: it is
        not set."""
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("MUSTER_")}
        if metrics is not None:
            environment["MUSTER_METRICS"] = metrics
        if failpoint:
            environment["MUSTER_FAILPOINT"] = failpoint
        self.process = subprocess.Popen(
            [GATEWAY, "--listen", listen, "--data-dir", str(data_dir), "--health", "127.0.0.1:0",
             *map(str, arguments)],
            stderr=subprocess.PIPE, text=True, env=environment)
        self.health = self.await_line(r"msg=health at=(\S+)")[1]
        self.address = None
        if wait:
            self.await_ready()

    def await_ready(self):
        self.address = self.await_line(r"msg=ready address=https?://(\S+)")[1]
        self.port = int(self.address.rsplit(":", 1)[1])

    def await_line(self, pattern):
        """The match in the next line of the log that has one."""
        lines = []
        for line in iter(self.process.stderr.readline, ""):
            lines.append(line)
            found = re.search(pattern, line)
            if found:
                return found
        raise AssertionError(f"the gateway did not say {pattern}: {''.join(lines)}")

    def asked_for_health(self, path):
        """Its status, and what it says."""
        connection = http.client.HTTPConnection(self.health, timeout=TIMEOUT_SECONDS)
        with contextlib.closing(connection):
            connection.request("GET", path)
            reply = connection.getresponse()
            return reply.status, reply.read().decode().strip()

    def url(self, account=ACCOUNT):
        return f"http://{self.address}/{account}"

    def connection_string(self):
        return (f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
                f"QueueEndpoint={self.url()};"
                f"QueueSecondaryEndpoint={self.url(ACCOUNT + '-secondary')};")

    def kill(self):
        """Also one that has ended."""
        self.process.kill()
        self.wait()

    def stop(self):
        """Drains it, and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        if not self.process.stderr.closed:
            self.process.stderr.read()
            self.process.stderr.close()
        return self.process.wait(TIMEOUT_SECONDS)


def sign(method, path, headers, body=b""):
    """The Authorization header of a SharedKey request; `path` is as sent, with its query. Without a
    version it is that of 2008, which signs less."""
    lowered = {name.lower(): value for name, value in headers.items()}
    own = "".join(f"{name}:{value}\n" for name, value in sorted(lowered.items())
                  if name.startswith("x-ms-"))
    raw, _, query = path.partition("?")
    parameters = urllib.parse.parse_qsl(query, keep_blank_values=True)
    if "x-ms-version" in lowered:
        resource = f"/{ACCOUNT}{raw}" + "".join(
            f"\n{name.lower()}:{value}" for name, value in sorted(parameters))
        fields = ["content-encoding", "content-language"]
        values = [lowered.get(name, "") for name in fields]
        values += [str(len(body)) if body else "", lowered.get("content-md5", ""),
                   lowered.get("content-type", ""), "", "", "", "", "", ""]
    else:
        resource = f"/{ACCOUNT}{raw}" + "".join(
            f"?comp={value}" for name, value in parameters if name == "comp")
        values = [lowered.get("content-md5", ""), lowered.get("content-type", ""), ""]
    text = "\n".join([method, *values]) + "\n" + own + resource
    mac = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return f"SharedKey {ACCOUNT}:{base64.b64encode(mac).decode()}"


def account_sas():
    """One that allows all that a SAS can, for an hour."""
    expiry = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    signed = {"sp": "rwdlacup", "ss": "q", "srt": "sco", "st": "", "se": expiry, "sip": "", "spr": "", "sv": VERSION}
    text = "\n".join([ACCOUNT, *signed.values(), "", ""])
    mac = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return urllib.parse.urlencode({**{name: value for name, value in signed.items() if value},
                                   "sig": base64.b64encode(mac).decode()})


def signed_headers(method, path, body=b"", version=VERSION, headers=None):
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), **(headers or {})}
    if version:
        headers["x-ms-version"] = version
    headers["Authorization"] = sign(method, path, headers, body)
    return headers


class Reply:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # of http.client: names in any case
        self.body = body

    @property
    def said(self):
        code = self.headers.get("x-ms-error-code")
        return f"{self.status} {code}" if code else str(self.status)

    def all(self, name):
        """The texts of all elements of that name."""
        return [element.text or ""
                for element in xml.etree.ElementTree.fromstring(self.body).iter(name)]

    def messages(self):
        return [{child.tag: child.text or "" for child in element}
                for element in xml.etree.ElementTree.fromstring(self.body).iter("QueueMessage")]


class Client:
    """One connection, and the shared key of the development account. `path` begins after the
    account."""

    def __init__(self, address):
        self.connection = http.client.HTTPConnection(address, timeout=TIMEOUT_SECONDS)

    def ask(self, method, path, body=b"", version=VERSION, headers=None, account=ACCOUNT):
        body = body.encode() if isinstance(body, str) else body
        path = f"/{account}{path}"
        self.connection.request(method, path, body or None,
                                signed_headers(method, path, body, version, headers))
        reply = self.connection.getresponse()
        return Reply(reply.status, reply.headers, reply.read())

    def close(self):
        self.connection.close()


def create_queues(address, names):
    """Several at a time, so that they share syncs."""
    def create(some):
        with contextlib.closing(Client(address)) as client:
            return [client.ask("PUT", f"/{name}").said for name in some]
    with concurrent.futures.ThreadPoolExecutor(CREATORS) as creators:
        for said in creators.map(create, (names[i::CREATORS] for i in range(CREATORS))):
            if set(said) - {"201"}:
                raise AssertionError(f"queues were not created: {set(said)}")


def message(text):
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<QueueMessage><MessageText>{escaped}</MessageText></QueueMessage>"


class Service:
    """A gateway, and where it needs one, its NATS server."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.nats = NatsServer(self.folder) if ON_NATS else None
        self.gateways = []

    def start_gateway(self, *arguments, **named):
        """Several at a time only with a NATS server."""
        where = self.nats.arguments() if self.nats else []
        self.gateways.append(Gateway(self.folder / "data", *where, *arguments, **named))
        return self.gateways[-1]

    def kill(self):
        for running in self.gateways:
            running.kill()
        if self.nats:
            self.nats.kill()


class GatewayTest(unittest.TestCase):
    """Gives each test class a gateway, and each test a connection to it."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="muster-gateway-")
        cls.addClassCleanup(folder.cleanup)
        cls.service = Service(folder.name)
        cls.addClassCleanup(cls.service.kill)
        cls.gateway = cls.service.start_gateway(*cls.gateway_arguments())

    @classmethod
    def gateway_arguments(cls):
        return []

    @classmethod
    def tearDownClass(cls):
        code = cls.gateway.stop()
        if code != 0:
            raise AssertionError(f"the gateway ended with {code}")

    def setUp(self):
        self.client = Client(self.gateway.address)
        self.addCleanup(self.client.close)

    def ask(self, *arguments, **named):
        return self.client.ask(*arguments, **named)

    def said(self, *arguments, **named):
        return self.ask(*arguments, **named).said
