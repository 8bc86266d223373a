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

from conftest import HERE, clients, free_port

KEY = "sk-twill-probe"  # of the workers that want a key
HEALTH = ("--worker-startup-check-interval", "1", "--health-check-interval-secs", "2", "--health-check-endpoint", "/ready")


class Started:
    """A router as a process, from when it is ready until stop()."""

    name, ready, needs_long, headers = "", "/health", False, {}

    def __init__(self, workers, key: str = "", model: str = ""):
        self.host, self.port = "127.0.0.1", free_port()
        self.url = f"http://{self.host}:{self.port}"
        self.folder = tempfile.TemporaryDirectory()
        self.workers, self.key, self.model = workers, key, model or workers[0].daemon.model()
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        self.process = subprocess.Popen([sys.executable, *map(str, self.command())], stdout=self.log, stderr=self.log,
                                        cwd=self.folder.name, env={**os.environ, **self.environment()})
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise

    def command(self) -> list:
        raise NotImplementedError

    def environment(self) -> dict:
        return {"PYTHONPATH": os.environ["TWILL_FLEET_LONG"]} if self.needs_long else {}

    def wait(self):
        deadline = time.monotonic() + 120
        while not self.is_ready():
            assert self.process.poll() is None, f"{self.name} ended early:\n" + self.text_of_log()[-3000:]
            assert time.monotonic() < deadline, f"{self.name} was not ready within 120 s:\n" + self.text_of_log()[-3000:]
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
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()


class VllmRouter(Started):
    name = "vllm-router"

    def command(self):
        return [HERE / "launch_vllm_router.py", "--host", self.host, "--port", self.port, "--prometheus-port", free_port(),
                "--policy", "round_robin", *HEALTH, "--worker-urls", *self.urls()]


class SglangRouter(Started):
    """Its launcher is `smg launch`; loads are asked for by power_of_two alone."""

    name, needs_long = "sglang-router", True

    def command(self):
        return ["-m", "sglang_router.launch_router", "--host", self.host, "--port", self.port, "--prometheus-host", self.host,
                "--prometheus-port", free_port(), "--policy", "power_of_two", *HEALTH, "--worker-urls", *self.urls()]

    def is_ready(self):
        """It answers before it has registered its workers, which it does in the background."""
        if not super().is_ready():
            return False
        status, _, text = self.request("GET", "/workers", timeout=5)
        return status == 200 and len(json.loads(text)["workers"]) == len(self.workers)


class LiteLLM(Started):
    """It answers by keys of its own, and shows workers the key of its configuration. It begins with no other than a master key."""

    name, ready, needs_long = "LiteLLM", "/health/liveliness", True
    headers = {"Authorization": f"Bearer {KEY}"}

    def command(self):
        entries = [{"model_name": self.model, "litellm_params": {
            "model": f"openai/{self.model}", "api_base": f"{url}/v1", "api_key": self.key or "none"}} for url in self.urls()]
        config = pathlib.Path(self.folder.name) / "config.yaml"
        config.write_text(json.dumps({"model_list": entries, "router_settings": {"num_retries": 0}}))
        return ["-c", "from litellm import run_server; run_server()", "--config", config, "--host", self.host, "--port", self.port,
                "--telemetry", "False"]

    def environment(self):
        return {**super().environment(), "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


ROUTERS = (VllmRouter, SglangRouter, LiteLLM)
