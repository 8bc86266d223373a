"""Routers that the tests start in front of workers. Each has a name, a `url`, `request` and `post`, and `stop`.

How each is begun here is how it proved right: health by /ready every 2 s, so that a worker that drains gets no more.
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

KEY = "sk-twill-probe"  # of the workers that want a key
HEALTH = ("--worker-startup-check-interval", "1", "--health-check-interval-secs", "2")


class Started:
    """A router as processes, from when it is ready until stop(). `suite` is the folder whose packages it needs with --long."""

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
        """What the program is given, one line for each process."""
        raise NotImplementedError

    def environment(self) -> dict:
        return {}

    def wait(self):
        deadline = time.monotonic() + 300  # LiteLLM imports for long on a busy machine
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
    """By the file of config/examples/fleet, without TLS and without a router behind it."""

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
        """It has found who is not there: the router, and the third worker."""
        return super().is_ready() and all(f"Server {one} is DOWN" in self.text_of_log() for one in ("router/router", "workers/w3"))


class VllmRouter(Started):
    name = "vllm-router"
    options = ("--policy", "round_robin", "--health-check-endpoint", "/ready")

    def commands(self):
        return [[HERE / "launch_vllm_router.py", "--host", self.host, "--port", self.port, "--prometheus-port", free_port(),
                 *HEALTH, *self.options, "--worker-urls", *self.urls()]]


class KvRouter(VllmRouter):
    """With the given options, and the events of its workers or none."""

    def __init__(self, workers, *options: str, events: bool = True):
        self.options = options
        if events:
            for one in workers:
                self.options += ("--kv-event-source", f"{one.url}={one.events}")
            self.options += ("--kv-event-block-size", "16", "--kv-event-model", workers[0].daemon.model())
        super().__init__(workers)


class SglangRouter(Started):
    """Its launcher is `smg launch`; loads are asked for by power_of_two alone. Its circuit breaker takes a full queue (429) for a
    fault, and then refuses all for 60 s; health checks find faults without it."""

    name, suite = "sglang-router", "long"

    def commands(self):
        return [["-m", "sglang_router.launch_router", "--host", self.host, "--port", self.port, "--prometheus-host", self.host,
                 "--prometheus-port", free_port(), "--policy", "power_of_two", "--disable-circuit-breaker", *HEALTH,
                 "--health-check-endpoint", "/ready", "--worker-urls",
                 *self.urls()]]

    def is_ready(self):
        """It answers before it has registered its workers, which it does in the background."""
        if not super().is_ready():
            return False
        status, _, text = self.request("GET", "/workers", timeout=5)
        return status == 200 and len(json.loads(text)["workers"]) == len(self.workers)


class LiteLLM(Started):
    """It answers by keys of its own, and shows workers the key of its configuration. It begins with no other than a master key."""

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
    """Its frontend, and in front of each daemon a worker of Dynamo's, by which alone it reaches one."""

    name, suite = "Dynamo", "dynamo"

    def commands(self):
        adapters = [[HERE / "dynamo" / "worker.py", url, self.model, self.key or "none"] for url in self.urls()]
        return [*adapters, ["-m", "dynamo.frontend", "--http-host", self.host, "--http-port", self.port, "--router-mode", "round-robin"]]

    def environment(self):
        return self.surroundings(self.folder.name)

    @staticmethod
    def surroundings(folder) -> dict:
        """Its processes find each other by a folder, on loopback."""
        return {"DYN_DISCOVERY_BACKEND": "file", "DYN_FILE_KV": str(folder), "DYN_REQUEST_PLANE": "tcp", "DYN_EVENT_PLANE": "zmq",
                "DYN_TCP_RPC_HOST": "127.0.0.1", "DYN_TCP_RESPONSE_STREAM_HOST": "127.0.0.1", "HF_HUB_OFFLINE": "1"}

    def is_ready(self):
        return super().is_ready() and len(json.loads(self.request("GET", "/health")[2]).get("instances", [])) >= len(self.workers)


ROUTERS = (HAProxy, VllmRouter, SglangRouter, LiteLLM, Dynamo)
