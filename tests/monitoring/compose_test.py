#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compose file: what its services are told is what their programs know, and they find each other.

No container is started: the services run as processes of this machine. The programs that MUSTER and MUSTER_…_PROGRAM name tell which options there are.
"""

import base64
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import monitoring
from monitoring import COMPOSE, ROOT

sys.path.insert(0, str(ROOT / "tests/integration"))
from mesh import Program, free_address  # noqa: E402

PROGRAMS = {"muster": "MUSTER", "muster-initiator": "MUSTER_INITIATOR_PROGRAM",
            "muster-controller": "MUSTER_CONTROLLER_PROGRAM",
            "muster-processor": "MUSTER_PROCESSOR_PROGRAM",
            "muster-scaling-agent": "MUSTER_SCALING_AGENT_PROGRAM",
            "muster-queue-gateway": "MUSTER_QUEUE_GATEWAY"}
CONFIGURATION = monitoring.read_yaml(COMPOSE / "compose.yaml")
SERVICES = CONFIGURATION["services"]
OF_MUSTER = {name: service for name, service in SERVICES.items()
             if service.get("command", [""])[0].startswith("muster-")}
# Without a profile, those of a mesh.
ROLES = {name: service for name, service in OF_MUSTER.items() if "profiles" not in service}
GATEWAY = SERVICES["queue-gateway"]


def option(service, name):
    [value] = [word.partition("=")[2] for word in service["command"] if word.startswith(f"--{name}=")]
    return value


def find_nats_server():
    return shutil.which("nats-server", path=os.environ["PATH"] + ":/usr/sbin")  # where Debian has it


def mounts(service):
    """(source, target, mode) of each volume of a service that has a source."""
    return [(mount.split(":") + [""])[:3] for mount in service.get("volumes", []) if ":" in mount]


class OptionsTest(unittest.TestCase):
    @functools.lru_cache(maxsize=None)
    def known_to(self, *command):
        shown = subprocess.run([*command, "--help"], capture_output=True, text=True)
        return set(re.findall(r"--[a-z][a-z0-9._-]+", shown.stdout + shown.stderr))

    def assert_knows(self, command, words):
        told = {word.partition("=")[0] for word in words if word.startswith("--")}
        self.assertLessEqual(told, self.known_to(*command))

    def test_services_know_their_options_and_variables(self):
        self.assertEqual(len(ROLES), 5)
        self.assertEqual(set(OF_MUSTER) - set(ROLES), {"queue-gateway"})
        for name, service in OF_MUSTER.items():
            with self.subTest(name):
                program = monitoring.program(PROGRAMS[service["command"][0]])
                variables = ["--" + variable.removeprefix("MUSTER_").lower().replace("_", "-")
                             for variable in service["environment"]]
                self.assert_knows([program], service["command"] + variables)

    def test_health_checks_are_commands_of_muster(self):
        for name, service in ROLES.items():
            with self.subTest(name):
                kind, program, *words = service["healthcheck"]["test"]
                self.assertEqual((kind, program), ("CMD", "muster"))
                self.assert_knows([monitoring.program("MUSTER"), *words[:2]], words)
                self.assertEqual(option({"command": words}, "server"),
                                 "localhost:" + option(service, "listen").rpartition(":")[2])

    def test_the_gateway_is_asked_where_it_answers_probes(self):
        kind, program, *words = GATEWAY["healthcheck"]["test"]
        self.assertEqual((kind, program, words[0]), ("CMD", "muster", "doctor"))
        self.assert_knows([monitoring.program("MUSTER"), "doctor"], words)
        self.assertEqual(option({"command": words}, "gateway"), option(GATEWAY, "health"))

    def test_servers_of_others_know_their_options(self):
        for name, found in (("nats", find_nats_server()), ("prometheus", monitoring.find("prometheus"))):
            if found is None:
                self.skipTest(f"there is no program of {name}")
            with self.subTest(name):
                self.assert_knows([found], SERVICES[name]["command"])

    def test_muster_takes_the_rules(self):
        muster = monitoring.program("MUSTER")
        done = subprocess.run([muster, "scale", "rules", "check", COMPOSE / "rules.yaml"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class ServicesTest(unittest.TestCase):
    def test_every_container_is_hardened_and_not_root(self):
        for name, service in SERVICES.items():
            with self.subTest(name):
                self.assertTrue(service["read_only"])
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertEqual(service["security_opt"], ["no-new-privileges:true"])
                self.assertRegex(service["user"], "^[1-9][0-9]*:[1-9][0-9]*$")
                self.assertNotIn("privileged", service)

    def test_every_image_has_a_tag_and_the_services_have_that_of_this_version(self):
        [version] = re.findall(r"^project\(muster VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(),
                               re.MULTILINE)
        for name, service in SERVICES.items():
            self.assertRegex(service["image"], r":v?[0-9]+\.", name)
            if name in OF_MUSTER:
                self.assertEqual(service["image"], f"${{MUSTER_IMAGE:-muster:{version}}}")

    def test_nats_is_the_one_of_the_chart(self):
        image = monitoring.read_yaml(ROOT / "helm/muster/values.yaml")["nats"]["image"]
        self.assertEqual(SERVICES["nats"]["image"], f"{image['repository']}:{image['tag']}")

    def test_what_waits_for_another_one_waits_for_one_that_tells_its_health(self):
        for service in SERVICES.values():
            for name, about in service.get("depends_on", {}).items():
                if about["condition"] == "service_healthy":
                    self.assertIn("healthcheck", SERVICES[name])

    def test_ports_are_published_on_this_machine_only_and_once(self):
        published = [port for service in SERVICES.values() for port in service.get("ports", [])]
        self.assertEqual(len(published), 4)
        self.assertEqual(len(set(published)), len(published))
        for port in published:
            self.assertRegex(port, r"^127\.0\.0\.1:(\d+):\1$")

    def test_services_are_reached_by_their_names(self):
        for name, service in ROLES.items():
            port = option(service, "listen").rpartition(":")[2]
            self.assertEqual(option(service, "advertise"), f"{name}:{port}")
            self.assertEqual(service["environment"]["MUSTER_NATS"], "nats://nats:4222")
        self.assertEqual(GATEWAY["environment"]["MUSTER_NATS"], "nats://nats:4222")
        self.assertIn("--port=4222", SERVICES["nats"]["command"])

    def test_what_is_written_is_a_volume_and_what_is_mounted_is_there(self):
        for name, service in SERVICES.items():
            for source, target, mode in mounts(service):
                with self.subTest(name, mount=source):
                    if source.startswith("."):
                        self.assertEqual(mode, "ro")
                        if not source.startswith("../../build/"):
                            self.assertTrue((COMPOSE / source).exists())
                    else:
                        self.assertIn(source, CONFIGURATION["volumes"])
        for name, service in ROLES.items():
            folders = {mount.split(":")[-1] for mount in service["volumes"]}
            self.assertIn(option(service, "data-dir"), folders, name)

    def test_a_container_may_take_longer_than_the_grace_of_its_service(self):
        for service in OF_MUSTER.values():
            self.assertEqual(service["stop_grace_period"], "45s")

    def test_operators_and_probes_of_the_gateway_are_in_its_container(self):
        for name in ("admin", "health"):
            self.assertTrue(option(GATEWAY, name).startswith("localhost:"))


class PrometheusTest(unittest.TestCase):
    def test_it_reads_the_metrics_of_every_service(self):
        [scrape] = monitoring.read_yaml(COMPOSE / "prometheus.yaml")["scrape_configs"]
        self.assertEqual(sorted(scrape["static_configs"][0]["targets"]), sorted(
            f"{name}:{option(service, 'metrics').rpartition(':')[2]}" for name, service in ROLES.items()))
        # One that does not run has no address.
        self.assertEqual(scrape["dns_sd_configs"], [{
            "names": ["queue-gateway"], "type": "A",
            "port": int(option(GATEWAY, "metrics").rpartition(":")[2])}])

    def test_promtool_takes_the_configurations(self):
        promtool = monitoring.find("promtool")
        if promtool is None:
            self.skipTest("there is no promtool")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            placed = {}
            for source, target, _ in mounts(SERVICES["prometheus"]):
                if source.startswith("."):
                    placed[target] = folder / pathlib.Path(target).name
                    placed[target].write_bytes((COMPOSE / source).read_bytes())
            main = placed[option(SERVICES["prometheus"], "config.file")]
            text = main.read_text()
            for rules in monitoring.read_yaml(main)["rule_files"]:
                self.assertIn(rules, placed)
                text = text.replace(rules, str(placed[rules]))
            main.write_text(text)
            for configuration in (main, ROOT / "deploy/prometheus/one_machine.yaml"):
                done = subprocess.run([promtool, "check", "config", configuration],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("rules found", done.stdout)


class GrafanaTest(unittest.TestCase):
    PROVISIONING = ROOT / "deploy/grafana/provisioning"

    def test_the_files_of_provisioning_name_what_compose_sets_and_mounts(self):
        environment = SERVICES["grafana"]["environment"]
        targets = {target: COMPOSE / source for source, target, _ in mounts(SERVICES["grafana"])}
        [datasource] = monitoring.read_yaml(self.PROVISIONING / "datasources/prometheus.yaml")["datasources"]
        self.assertEqual((datasource["type"], datasource["url"]), ("prometheus", "$MUSTER_PROMETHEUS_URL"))
        self.assertEqual(environment["MUSTER_PROMETHEUS_URL"], "http://prometheus:9090")
        [provider] = monitoring.read_yaml(self.PROVISIONING / "dashboards/muster.yaml")["providers"]
        self.assertEqual(provider["options"]["path"], "$MUSTER_DASHBOARDS")
        folder = environment["MUSTER_DASHBOARDS"]
        self.assertEqual(targets[folder].resolve(), monitoring.DASHBOARDS)
        home = pathlib.Path(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
        self.assertEqual(str(home.parent), folder)
        self.assertTrue((monitoring.DASHBOARDS / home.name).exists())
        self.assertEqual(targets["/etc/grafana/provisioning"].resolve(), self.PROVISIONING)

    def test_an_interval_between_points_is_that_of_the_scrapes(self):
        [datasource] = monitoring.read_yaml(self.PROVISIONING / "datasources/prometheus.yaml")["datasources"]
        for path in (COMPOSE / "prometheus.yaml", ROOT / "deploy/prometheus/one_machine.yaml"):
            self.assertEqual(monitoring.read_yaml(path)["global"]["scrape_interval"],
                             datasource["jsonData"]["timeInterval"])


class RunTest(unittest.TestCase):
    """The services with the options of the file, as processes of this machine."""

    WAIT_SECONDS = 60

    def setUp(self):
        for variable in PROGRAMS.values():
            monitoring.program(variable)
        if find_nats_server() is None:
            self.skipTest("there is no nats-server")
        folder = tempfile.TemporaryDirectory(prefix="muster-compose-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addresses = {}
        self.settings = {}  # what the shell of docker compose has

    def here(self, name, words):
        """What a container is told, for this machine: its own ports are those of 0.0.0.0 and localhost."""
        def address(match):
            host = name if match[1] in ("0.0.0.0", "localhost") else match[1]
            return self.addresses.setdefault(f"{host}:{match[2]}", free_address())

        hosts = "|".join(["0.0.0.0", "localhost", *SERVICES])
        told = []
        for word in words:
            word = re.sub(r"\$\{(\w+):-([^}]*)\}", lambda match: self.settings.get(match[1], match[2]), word)
            word = re.sub(rf"\b({hosts}):(\d+)", address, word)
            word = word.replace("/var/lib/muster", str(self.folder / name))
            word = word.replace("/etc/muster/accounts", str(self.folder / "accounts"))
            told.append(word.replace("/etc/muster/rules.yaml", str(COMPOSE / "rules.yaml")))
        return told

    def start(self, name):
        service = SERVICES[name]
        environment = [f"{key}={value}" for key, value in service["environment"].items()]
        program, *options = service["command"]
        started = Program(["env", *self.here(name, environment), monitoring.program(PROGRAMS[program]),
                           *self.here(name, options)], "msg=ready")
        self.addCleanup(started.kill)
        return started

    def start_nats(self):
        host, port = self.addresses["nats:4222"].split(":")
        changed = {"--addr": host, "--port": port, "--store_dir": self.folder / "nats",
                   "--http_port": free_address().split(":")[1]}
        words = [word.partition("=")[0] for word in SERVICES["nats"]["command"]]
        server = Program([find_nats_server(), *(f"{word}={changed[word]}" if word in changed else word
                                                for word in words)], "Server is ready")
        self.addCleanup(server.kill)
        server.await_ready()

    def muster(self, *words):
        return subprocess.run([monitoring.program("MUSTER"), *map(str, words)], capture_output=True,
                              text=True, timeout=self.WAIT_SECONDS)

    def await_health(self, name):
        _, _, *words = SERVICES[name]["healthcheck"]["test"]
        end = time.monotonic() + self.WAIT_SECONDS
        while (done := self.muster(*self.here(name, words))).returncode != 0:
            self.assertLess(time.monotonic(), end, f"{name}: {done.stderr}")
            time.sleep(0.1)

    def test_all_become_healthy_and_complete_a_batch(self):
        self.here("initiator", ["nats:4222"])
        self.start_nats()
        for name in ROLES:
            self.start(name).await_ready()
        for name in ROLES:
            self.await_health(name)
        data = self.folder / "retail.csv"
        subprocess.run([sys.executable, ROOT / "scripts/make_retail", "--rows", "2000", data], check=True)
        server = ("--server", self.addresses["initiator:7700"])
        for words in (("job", "apply", ROOT / "examples/retail/job.yaml"),
                      ("batch", "submit", "retail", "--input", data, "--wait"),
                      ("scale", "status", "retail")):
            done = self.muster(*words, *server)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("retail", done.stdout)

    def test_processors_wait_for_the_release_that_the_shell_names_and_the_controller_takes_its_lease(self):
        self.settings = {"MUSTER_STANDBY": "opening", "MUSTER_OWNERSHIP_LEASE": "3s"}
        self.here("initiator", ["nats:4222"])
        self.start_nats()
        for name in ("initiator", "controller"):
            self.start(name).await_ready()
        processor = self.start("processor-1")
        processor.await_line("parked: takes no item before a release")
        done = self.muster("release", "opening", "--server", self.addresses["initiator:7700"])
        self.assertEqual(done.returncode, 0, done.stderr)
        processor.await_line("released: takes items")
        self.assertIn("--ownership-lease=3s", self.here("controller", SERVICES["controller"]["command"]))

    def test_the_gateway_becomes_healthy_and_serves_operators(self):
        self.here("queue-gateway", ["nats:4222"])
        self.start_nats()
        (self.folder / "accounts").write_text(f"shop:{base64.b64encode(bytes(32)).decode()}\n")
        self.start("queue-gateway").await_ready()
        self.await_health("queue-gateway")
        [server] = self.here("queue-gateway", [option(GATEWAY, "admin")])
        done = self.muster("queue", "list", "--account", "shop", "--server", server, "-o", "json")
        self.assertEqual((done.returncode, done.stdout), (0, "[]\n"), done.stderr)


if __name__ == "__main__":
    monitoring.main()
