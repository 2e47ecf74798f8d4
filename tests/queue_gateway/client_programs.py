# SPDX-License-Identifier: Apache-2.0
"""The programs that do operations of the queue gateway by the clients of scenarios.json, one client each."""

import json
import os
import pathlib
import shutil
import subprocess

import gateway

HERE = pathlib.Path(__file__).parent


def python_command(variable):
    if not os.environ.get(variable):
        gateway.skip(f"{variable} names no Python")
    return [os.environ[variable], "-B", HERE / "azure_python_client.py"]


def node_command(script, package):
    modules = os.environ.get("MUSTER_AZURE_NODE_MODULES")
    if not modules or not shutil.which("node") or not (pathlib.Path(modules) / package).is_dir():
        gateway.skip(f"MUSTER_AZURE_NODE_MODULES has no {package}, or there is no node")
    os.environ["NODE_PATH"] = modules
    os.environ["STORAGE_QUEUE"] = package
    return ["node", "--no-deprecation", HERE / script]


def built(program, *command):
    """One that scripts/lib/azure_clients.sh builds into the folder MUSTER_AZURE_CLIENTS."""
    folder = os.environ.get("MUSTER_AZURE_CLIENTS")
    if not folder or not (pathlib.Path(folder) / program).exists():
        gateway.skip(f"MUSTER_AZURE_CLIENTS has no {program}")
    return [part.format(folder=folder) for part in command or [f"{{folder}}/{program}"]]


def java_command(name):
    return built(f"java/{name}.class", "java", "-cp", "{folder}/java:{folder}/java/jars/*", name)


COMMANDS = {
    "go": lambda: built("go"),
    "go-1": lambda: built("go-1"),
    "rust": lambda: built("rust"),
    "rust-token": lambda: built("rust"),
    "java": lambda: java_command("AzureClient"),
    "java-legacy": lambda: java_command("LegacyAzureClient"),
    "python": lambda: python_command("MUSTER_AZURE_PYTHON"),
    "python-12-8": lambda: python_command("MUSTER_AZURE_PYTHON_12_8"),
    "javascript": lambda: node_command("azure_javascript_client.js", "@azure/storage-queue"),
    "javascript-12-32": lambda: node_command("azure_javascript_client.js", "azure-storage-queue-12-32"),
    "javascript-legacy": lambda: node_command("azure_javascript_legacy_client.js", "azure-storage"),
}


def command_of(client):
    """How its program is started; ends this program as skipped where it is not there."""
    return COMMANDS[client]()


class ProgramClient:
    """A program that does one operation for each line of its input."""

    def __init__(self, command, connection, own_retries=False):
        """`connection`: a connection string. `own_retries`: repeats calls as the SDK does by itself; else each
        call is one request."""
        self.program = str(command[-1])
        environment = {**os.environ, "CONNECTION": connection, "ACCOUNT_SAS": gateway.account_sas()}
        if own_retries:
            environment["OWN_RETRIES"] = "1"
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)

    def call(self, step):
        self.process.stdin.write(json.dumps(step) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"{self.program} ended with {self.process.wait(gateway.TIMEOUT_SECONDS)}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait(gateway.TIMEOUT_SECONDS)
        self.process.stdout.close()
