# SPDX-License-Identifier: Apache-2.0
"""The scenarios of scenarios.json by one client, unmodified: `scenarios_test.py CLIENT`, with a name of the file's
clients. What the file says that a client lacks, the client must lack, and everything else it must do."""

import json
import os
import pathlib
import re
import shutil
import sys
import unittest

import client_programs
import curl_client
import gateway
import tls

HERE = pathlib.Path(__file__).parent
BOOK = json.loads((HERE / "scenarios.json").read_text())
CLIENT = sys.argv.pop(1)
TRAITS = BOOK["clients"][CLIENT]
OPERATIONS = {
    "ListQueues", "GetServiceProperties", "SetServiceProperties", "GetServiceStats", "CreateQueue",
    "DeleteQueue", "GetQueueMetadata", "SetQueueMetadata", "GetQueueAcl", "SetQueueAcl", "PutMessage",
    "GetMessages", "PeekMessages", "UpdateMessage", "DeleteMessage", "ClearMessages"}


if CLIENT == "curl" and not shutil.which("curl"):
    gateway.skip("there is no curl")
COMMAND = None if CLIENT == "curl" else client_programs.command_of(CLIENT)


def steps_of(scenario):
    """Without steps: the engine cannot."""
    if isinstance(scenario, list):
        return scenario
    return scenario["steps"] if scenario["engine"] == gateway.ENGINE else []


def features(step):
    return {step[name] for name in ("do", "encode", "needs") if name in step}


def renamed(metadata, way):
    ways = {"lower": str.lower, "capitalized": str.capitalize, None: str}
    return {ways[way](name): value for name, value in metadata.items()}


class Scenario:
    """One run of a scenario: what is kept, and the names that the steps mean."""

    def __init__(self, client):
        self.client = client
        self.kept = {}

    def own(self, name):
        return f"{CLIENT}-{name}"

    def meant(self, value):
        if isinstance(value, dict):
            if set(value) == {"repeat", "times"}:
                return value["repeat"] * value["times"]
            return {name: self.meant(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.meant(member) for member in value]
        return self.kept[value[1:]] if isinstance(value, str) and value.startswith("$") else value

    def request(self, step):
        request = self.meant({name: value for name, value in step.items()
                              if name not in ("expect", "refused", "keep", "needs")})
        for name in {"queue", "prefix"} & set(request):
            request[name] = self.own(request[name])
        return request

    def expected(self, step):
        expected = self.meant(step.get("expect", {}))
        if "pages" in expected:
            expected["pages"] = [[self.own(name) for name in page] for page in expected["pages"]]
        if "metadata" in expected:
            if step["do"] == "GetQueueMetadata":
                expected["metadata"] = renamed(expected["metadata"], TRAITS.get("header_names"))
            else:
                expected["metadata"] = [renamed(one, TRAITS.get("list_names")) for one in expected["metadata"]]
        return expected

    def run(self, step):
        answer = self.client.call(self.request(step))
        for name, path in step.get("keep", {}).items():
            found = answer
            for part in path.split("."):
                found = found[int(part)] if isinstance(found, list) else found[part]
            self.kept[name] = found
        return answer


def differences(expected, found, where=""):
    """Where `found` is not what is expected of it; long texts are cut."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return [line for name in expected
                for line in differences(expected[name], found.get(name), f"{where}.{name}")]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        return [line for i, pair in enumerate(zip(expected, found))
                for line in differences(*pair, f"{where}[{i}]")]
    return [] if expected == found else [f"{where}: {str(found)[:200]!r} is not {str(expected)[:200]!r}"]


class ScenariosTest(gateway.GatewayTest):

    @classmethod
    def gateway_arguments(cls):
        if not TRAITS.get("has_token"):
            return []
        if not shutil.which("openssl"):
            gateway.skip("there is no openssl")
        certificate, key = tls.certificate(cls.service.folder)
        os.environ["SSL_CERT_FILE"] = str(certificate)
        os.environ["TOKEN"] = tls.token()
        return ["--cert", certificate, "--key", key, "--oauth", "basic"]

    def setUp(self):
        if TRAITS.get("has_token"):
            connection = self.gateway.connection_string().replace("http://", "https://")
            self.speaker = client_programs.ProgramClient(COMMAND, connection)
            self.addCleanup(self.speaker.close)
            return
        super().setUp()
        self.speaker = (client_programs.ProgramClient(COMMAND, self.gateway.connection_string()) if COMMAND
                        else curl_client.CurlClient(self.gateway.address))
        self.addCleanup(self.speaker.close)

    def check(self, scenario, step):
        answer = scenario.run(step)
        if "refused" in step:
            self.assertEqual(answer.get("refused"), step["refused"], step)
            return
        self.assertNotIn("refused", answer, step)
        self.assertNotIn("lacks", answer, step)
        self.assertEqual(differences(scenario.expected(step), answer), [], step)

    def test_does_all_scenarios_that_it_can(self):
        done = set()
        for name, steps in BOOK["scenarios"].items():
            steps = steps_of(steps)
            used = set().union(*map(features, steps)) if steps else set()
            if used & set(TRAITS["lacks"]):
                continue
            with self.subTest(scenario=name):
                scenario = Scenario(self.speaker)
                for step in steps:
                    self.check(scenario, step)
                done |= used
        self.assertEqual(OPERATIONS - done - set(TRAITS["lacks"]), set(), "operations that no scenario has done")

    @unittest.skipIf("ListQueues" in TRAITS["lacks"], "it lists no queues")
    @unittest.skipIf(gateway.ON_NATS, "thousands of streams are not what a NATS server is for")
    def test_lists_thousands_of_queues_by_pages(self):
        page, count = (50, 250) if os.environ.get("MUSTER_TEST_SMALL_COUNTS") else (1000, 5000)
        names = [f"{CLIENT}-many-{number:04}" for number in range(count)]
        if TRAITS.get("has_token"):
            for name in names:
                self.assertNotIn("refused", self.speaker.call({"do": "CreateQueue", "queue": name}))
        else:
            gateway.create_queues(self.gateway.address, names)
        listed = self.speaker.call({"do": "ListQueues", "prefix": f"{CLIENT}-many-", "page_size": page})
        self.assertEqual([len(names) for names in listed["pages"]], [page] * (count // page))
        self.assertEqual([name for names in listed["pages"] for name in names], names)

    @unittest.skipUnless(COMMAND, "curl may be of any version")
    def test_is_of_the_version_that_the_documentation_names(self):
        package, version = TRAITS["package"].split(" ")
        self.assertEqual(self.speaker.call({"do": "Version"}), {"version": version})
        root = HERE.parents[1]
        documented = f"| `{package}` {version}"
        self.assertTrue(documented in (root / "docs" / "queue_api.md").read_text(), documented)
        pinned = rf"(?<![\w-]){re.escape(package.rsplit(':', 1)[-1])}\W[^\n]*(?<![\d.]){re.escape(version)}\b"
        self.assertTrue(re.search(pinned, (root / TRAITS["pinned"]).read_text()), pinned)

    def test_lacks_what_the_table_says(self):
        for lacking in TRAITS["lacks"]:
            with self.subTest(lacking=lacking):
                step = {"do": lacking}
                if lacking.endswith("Base64"):
                    step = {"do": "PutMessage", "queue": "lacking", "text": "eA==", "encode": lacking}
                elif lacking == "WrongNames":
                    step = {"do": "CreateQueue", "queue": "Upper"}
                elif lacking == "WrongTexts":
                    step = {"do": "PutMessage", "queue": "lacking", "text": "x" * 65537}
                elif lacking == "WrongTimes":
                    step = {"do": "PutMessage", "queue": "lacking", "text": "x", "ttl": 9, "visibility": 9}
                self.assertEqual(self.speaker.call(step), {"lacks": lacking})


if __name__ == "__main__":
    unittest.main()
