"""The scenarios of scenarios.json by one client, unmodified: `scenarios_test.py CLIENT`, with a name of the file's
clients. What the file says that a client lacks, the client must lack, and everything else it must do."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import curl_client
import gateway

HERE = pathlib.Path(__file__).parent
BOOK = json.loads((HERE / "scenarios.json").read_text())
CLIENT = sys.argv.pop(1)
TRAITS = BOOK["clients"][CLIENT]
OPERATIONS = {
    "ListQueues", "GetServiceProperties", "SetServiceProperties", "GetServiceStats", "CreateQueue",
    "DeleteQueue", "GetQueueMetadata", "SetQueueMetadata", "GetQueueAcl", "SetQueueAcl", "PutMessage",
    "GetMessages", "PeekMessages", "UpdateMessage", "DeleteMessage", "ClearMessages"}


def skip(why):
    print(f"skipped: {why}", file=sys.stderr)
    sys.exit(gateway.SKIPPED)


def python_command(variable):
    if not os.environ.get(variable):
        skip(f"{variable} names no Python")
    return [os.environ[variable], "-B", HERE / "azure_python_client.py"]


def node_command(script, package):
    modules = os.environ.get("MUSTER_AZURE_NODE_MODULES")
    if not modules or not shutil.which("node") or not (pathlib.Path(modules) / package).is_dir():
        skip(f"MUSTER_AZURE_NODE_MODULES has no {package}, or there is no node")
    os.environ["NODE_PATH"] = modules
    os.environ["STORAGE_QUEUE"] = package
    return ["node", "--no-deprecation", HERE / script]


COMMANDS = {
    "python": lambda: python_command("MUSTER_AZURE_PYTHON"),
    "python-12-8": lambda: python_command("MUSTER_AZURE_PYTHON_12_8"),
    "javascript": lambda: node_command("azure_javascript_client.js", "@azure/storage-queue"),
    "javascript-12-32": lambda: node_command("azure_javascript_client.js", "azure-storage-queue-12-32"),
    "javascript-legacy": lambda: node_command("azure_javascript_legacy_client.js", "azure-storage"),
}
if CLIENT == "curl" and not shutil.which("curl"):
    skip("there is no curl")
COMMAND = COMMANDS[CLIENT]() if CLIENT in COMMANDS else None


class ProgramClient:
    """A program that does one operation for each line of its input."""

    def __init__(self, running):
        self.process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "CONNECTION": running.connection_string()})

    def call(self, step):
        self.process.stdin.write(json.dumps(step) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"{CLIENT} ended with {self.process.wait(gateway.TIMEOUT_SECONDS)}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(gateway.TIMEOUT_SECONDS)
        self.process.stdout.close()


def steps_of(scenario):
    """Without steps: the engine cannot."""
    if isinstance(scenario, list):
        return scenario
    return scenario["steps"] if scenario["engine"] == gateway.ENGINE else []


def features(step):
    return {step[name] for name in ("do", "encode", "needs") if name in step}


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
        if step["do"] == "GetQueueMetadata" and TRAITS.get("lowers_header_names"):
            metadata = expected.get("metadata", {})
            expected = {**expected, **({"metadata": {n.lower(): v for n, v in metadata.items()}}
                                       if metadata else {})}
        if step["do"] == "ListQueues" and TRAITS.get("lowers_sent_names") and "metadata" in expected:
            expected["metadata"] = [{n.lower(): v for n, v in metadata.items()}
                                    for metadata in expected["metadata"]]
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

    def setUp(self):
        super().setUp()
        self.speaker = (ProgramClient(self.gateway) if COMMAND
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
        self.assertEqual(OPERATIONS - done, set(), "operations that no scenario has done")

    @unittest.skipUnless(COMMAND, "curl may be of any version")
    def test_is_of_the_version_that_the_documentation_names(self):
        package, version = TRAITS["package"].split(" ")
        self.assertEqual(self.speaker.call({"do": "Version"}), {"version": version})
        root = HERE.parents[1]
        self.assertIn(f"| `{package}` {version}", (root / "docs" / "queue_api.md").read_text())
        self.assertRegex((root / "scripts" / "lib" / "azure_clients.sh").read_text(),
                         rf"[=(:\s]{re.escape(package)}(==|@){re.escape(version)}")

    def test_lacks_what_the_table_says(self):
        for lacking in TRAITS["lacks"]:
            with self.subTest(lacking=lacking):
                step = {"do": lacking}
                if lacking.endswith("Base64"):
                    step = {"do": "PutMessage", "queue": "lacking", "text": "eA==", "encode": lacking}
                elif lacking == "WrongNames":
                    step = {"do": "CreateQueue", "queue": "Upper"}
                self.assertEqual(self.speaker.call(step), {"lacks": lacking})


if __name__ == "__main__":
    unittest.main()
