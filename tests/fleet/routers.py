"""Routers that the tests start in front of workers. Each has a name, a `url`, `request` and `post`, and `stop`.

They are started with the options that proved right: they check /ready every 2 s, so that a worker that drains gets no new requests.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from example import EXAMPLE, put_commands
from workers import HERE, clients, free_port

KEY = "sk-twill-probe"  # the key of workers that require one
HEALTH = ("--worker-startup-check-interval", "1", "--health-check-interval-secs", "2")


class Started:
    """The processes of a router. The constructor returns when the router is ready; stop() ends them. `suite` is the folder
    whose packages the router needs, which --long installs."""

    name, ready, suite, headers = "", "/health", "", {}

    def __init__(self, workers, key: str = "", model: str = ""):
        self.host, self.port = "127.0.0.1", free_port()
        self.url = f"http://{self.host}:{self.port}"
        self.folder = tempfile.TemporaryDirectory()
        self.workers, self.key, self.model = workers, key, model or workers[0].daemon.model()
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        environment = {**os.environ, **self.environment()}
        if self.suite:
            environment["PYTHONPATH"] = os.environ[f"TWILL_FLEET_{self.suite.upper()}"]
        self.processes = [subprocess.Popen([*self.program(), *map(str, one)], stdout=self.log, stderr=self.log, cwd=self.folder.name,
                                           env=environment) for one in self.commands()]
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise

    def program(self) -> list:
        return [sys.executable]

    def commands(self) -> list:
        """The arguments of the program: a list for each process."""
        raise NotImplementedError

    def environment(self) -> dict:
        return {}

    def wait(self):
        deadline = time.monotonic() + 300  # on a busy machine LiteLLM's imports take minutes
        while not self.is_ready():
            assert all(one.poll() is None for one in self.processes), f"{self.name} ended early:\n" + self.text_of_log()[-3000:]
            assert time.monotonic() < deadline, f"{self.name} was not ready within 300 s:\n" + self.text_of_log()[-3000:]
            time.sleep(0.1)

    def is_ready(self) -> bool:
        try:
            return self.request("GET", self.ready, timeout=5)[0] == 200
        except OSError:
            return False

    request = clients.Daemon.request
    post = clients.Daemon.post

    def urls(self) -> list:
        return [one.url for one in self.workers]

    def text_of_log(self) -> str:
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def stop(self):
        for one in self.processes:
            if one.poll() is None:
                one.kill()
                one.wait()
        self.log.close()
        self.folder.cleanup()


class HAProxy(Started):
    """HAProxy with the file of config/examples/fleet, without TLS and without a router behind it."""

    name, ready = "HAProxy", "/ready"

    def program(self):
        return [put_commands(pathlib.Path(self.folder.name)) / "haproxy"]

    def commands(self):
        text = (EXAMPLE / "haproxy.cfg").read_text()
        tls = ' ssl crt "${FLEET_CERTIFICATE-fleet.pem}" alpn h2,http/1.1'
        assert tls in text
        (pathlib.Path(self.folder.name) / "haproxy.cfg").write_text(text.replace(tls, ""))
        return [["-f", "haproxy.cfg"]]

    def environment(self):
        nobody = f"127.0.0.1:{free_port()}"
        addresses = [*(f"127.0.0.1:{one.port}" for one in self.workers), nobody, nobody, nobody][:3]
        return {"FLEET_LISTEN": f"127.0.0.1:{self.port}", "FLEET_ROUTER": nobody,
                **{f"FLEET_W{number + 1}": address for number, address in enumerate(addresses)}}

    def is_ready(self):
        """Whether HAProxy has found that the router and the third worker, which do not exist, are down."""
        return super().is_ready() and all(f"Server {one} is DOWN" in self.text_of_log() for one in ("router/router", "workers/w3"))


class VllmRouter(Started):
    name = "vllm-router"
    options = ("--policy", "round_robin", "--health-check-endpoint", "/ready")

    def commands(self):
        return [[HERE / "launch_vllm_router.py", "--host", self.host, "--port", self.port, "--prometheus-port", free_port(),
                 *HEALTH, *self.options, "--worker-urls", *self.urls()]]


class KvRouter(VllmRouter):
    """vllm-router with the given options, and with the KV events of its workers if `events`."""

    def __init__(self, workers, *options: str, events: bool = True):
        self.options = options
        if events:
            for one in workers:
                self.options += ("--kv-event-source", f"{one.url}={one.events}")
            self.options += ("--kv-event-block-size", "16", "--kv-event-model", workers[0].daemon.model())
        super().__init__(workers)


class SglangRouter(Started):
    """sglang-router. Its launcher is `smg launch`; only the policy power_of_two asks workers for their loads. Its circuit breaker
    would count a full queue (429) as a fault, and then refuse all requests for 60 s; health checks find faults without it."""

    name, suite = "sglang-router", "long"

    def commands(self):
        return [["-m", "sglang_router.launch_router", "--host", self.host, "--port", self.port, "--prometheus-host", self.host,
                 "--prometheus-port", free_port(), "--policy", "power_of_two", "--disable-circuit-breaker", *HEALTH,
                 "--health-check-endpoint", "/ready", "--worker-urls",
                 *self.urls()]]

    def is_ready(self):
        """Whether the workers are registered. The router answers before that, since it registers workers in the background."""
        if not super().is_ready():
            return False
        status, _, text = self.request("GET", "/workers", timeout=5)
        return status == 200 and len(json.loads(text)["workers"]) == len(self.workers)


class LiteLLM(Started):
    """LiteLLM has keys of its own for clients, and sends workers the key of its configuration. It starts with a master key alone."""

    name, ready, suite = "LiteLLM", "/health/liveliness", "long"
    headers = {"Authorization": f"Bearer {KEY}"}

    def commands(self):
        entries = [{"model_name": self.model, "litellm_params": {
            "model": f"openai/{self.model}", "api_base": f"{url}/v1", "api_key": self.key or "none"}} for url in self.urls()]
        config = pathlib.Path(self.folder.name) / "config.yaml"
        config.write_text(json.dumps({"model_list": entries, "router_settings": {"num_retries": 0}}))
        return [["-c", "from litellm import run_server; run_server()", "--config", config, "--host", self.host, "--port", self.port,
                 "--telemetry", "False"]]

    def environment(self):
        return {"LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


class Dynamo(Started):
    """Dynamo's frontend, and in front of each daemon a worker of Dynamo's, since the frontend reaches daemons only by those."""

    name, suite = "Dynamo", "dynamo"

    def commands(self):
        adapters = [[HERE / "dynamo" / "worker.py", url, self.model, self.key or "none"] for url in self.urls()]
        return [*adapters, ["-m", "dynamo.frontend", "--http-host", self.host, "--http-port", self.port, "--router-mode", "round-robin"]]

    def environment(self):
        return self.surroundings(self.folder.name)

    @staticmethod
    def surroundings(folder) -> dict:
        """Dynamo's processes find each other by files in a folder, and connect on loopback."""
        return {"DYN_DISCOVERY_BACKEND": "file", "DYN_FILE_KV": str(folder), "DYN_REQUEST_PLANE": "tcp", "DYN_EVENT_PLANE": "zmq",
                "DYN_TCP_RPC_HOST": "127.0.0.1", "DYN_TCP_RESPONSE_STREAM_HOST": "127.0.0.1", "HF_HUB_OFFLINE": "1"}

    def is_ready(self):
        return super().is_ready() and len(json.loads(self.request("GET", "/health")[2]).get("instances", [])) >= len(self.workers)


ROUTERS = (HAProxy, VllmRouter, SglangRouter, LiteLLM, Dynamo)
