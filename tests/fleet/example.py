"""Runs the files of config/examples/fleet as they are: its workers, its vllm-router, and HAProxy with its configuration."""

import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request

from haproxy import find_haproxy
from workers import HERE, free_port

EXAMPLE = HERE.parents[1] / "config/examples/fleet"
TLS = HERE.parent / "clients/tls"
NAMES = ("w1", "w2", "w3")


def put_command(folder: pathlib.Path, name: str, command: str) -> pathlib.Path:
    """Writes a script `name` into `folder` that runs `command`."""
    launcher = folder / name
    launcher.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    launcher.chmod(0o755)
    return launcher


def put_commands(folder: pathlib.Path) -> pathlib.Path:
    """Puts the commands vllm-router, as an installed wheel with its dependencies would have it, and haproxy into `folder`."""
    put_command(folder, "vllm-router", f'{sys.executable} {HERE / "launch_vllm_router.py"}')
    if packages := os.environ.get("TWILL_FLEET_LONG"):
        put_command(folder, "sglang-router", f"env PYTHONPATH={packages} {sys.executable} -m sglang_router.cli")
    program, libraries = find_haproxy()
    put_command(folder, "haproxy", f"env LD_LIBRARY_PATH={libraries} {program}" if libraries else program)
    return folder


def answers(address: str) -> bool:
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError:
        return False
    return True


class Example:
    """The running example. `worker` is a function that starts a worker which ends with the test. `router` is
    "vllm-router", "sglang-router" or, for no router behind HAProxy, empty. NAME in a setting becomes the name of each
    worker. `cut`: whether HAProxy has `on-marked-down shutdown-sessions`, as in the file."""

    def __init__(self, worker, router: str, cut: bool, *settings, model: str):
        self.prepare(worker, *settings, model=model)
        self.router, self.prometheus = router, str(free_port())
        try:
            self.start(cut)
        except BaseException:
            self.stop()
            raise

    def prepare(self, worker, *settings, model: str):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.processes = {}
        self.port = free_port()
        self.workers = {}
        self.environment = {**os.environ, "FLEET_LISTEN": f"127.0.0.1:{self.port}",
                            "FLEET_CERTIFICATE": str(self.folder / "fleet.pem"),
                            "FLEET_ROUTER": f"127.0.0.1:{free_port()}",
                            "PATH": f"{self.folder}:{os.environ['PATH']}"}
        pem = (TLS / "first.pem").read_text() + (TLS / "first.key").read_text()
        (self.folder / "fleet.pem").write_text(pem)
        self.trust = ssl.create_default_context(cafile=TLS / "first.pem")
        for name in NAMES:
            agent = free_port()
            own = [setting.replace("NAME", name) for setting in settings]
            one = worker(f"server.name={name}", f"server.agent_listen={agent}", "kv.events=EVENTS", *own,
                         config=EXAMPLE / "worker.toml", model=model)
            self.workers[name] = one
            self.environment[f"FLEET_{name.upper()}"] = f"127.0.0.1:{one.port}"
            self.environment[f"FLEET_{name.upper()}_AGENT"] = str(agent)
            self.environment[f"FLEET_{name.upper()}_EVENTS"] = f"127.0.0.1:{one.events_port}"
        put_commands(self.folder)

    def start(self, cut: bool):
        if self.router:
            self.begin_router()
        text = (EXAMPLE / "haproxy.cfg").read_text()
        if not cut:
            assert " on-marked-down shutdown-sessions" in text
            text = text.replace("  default-server on-marked-down shutdown-sessions\n", "").replace(" on-marked-down shutdown-sessions", "")
        (self.folder / "haproxy.cfg").write_text(text)
        self.begin("haproxy", self.folder / "haproxy", "-W", "-f", self.folder / "haproxy.cfg")
        self.wait_until(lambda: answers(self.environment["FLEET_LISTEN"]), "HAProxy does not answer")
        if not self.router:
            self.wait_until(lambda: "Server router/router is DOWN" in self.log(), "HAProxy does not miss the router")
        for name in NAMES:
            self.wait_until_up(name)

    def begin(self, name: str, *command):
        with open(self.folder / f"{name}.log", "w") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment, cwd=self.folder)

    def begin_router(self):
        self.begin(self.router, EXAMPLE / f"{self.router}.sh", "--prometheus-port", self.prometheus)
        self.wait_until(self.router_is_ready, "the router is not ready")

    def router_is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.environment['FLEET_ROUTER']}/readiness", timeout=10) as reply:
                return reply.status == 200
        except OSError:
            return False

    def log(self, name: str = "haproxy") -> str:
        return (self.folder / f"{name}.log").read_text()

    def wait_until(self, true, fault: str):
        deadline = time.monotonic() + 30
        while not true():
            assert time.monotonic() < deadline and None in [one.poll() for one in self.processes.values()], self.logs(fault)
            time.sleep(0.02)

    def logs(self, fault: str) -> str:
        others = [f"\n{path.stem}:\n{path.read_text()[-2000:]}" for path in self.folder.glob("*.log") if path.stem != "haproxy"]
        return f"{fault}:\n{self.log()[-3000:]}" + "".join(others)

    def wait_until_up(self, worker: str):
        """Waits until HAProxy gives the worker new requests, which it does from the start until a check fails."""
        def up() -> bool:
            said = [line for line in self.log().splitlines() if f"Server workers/{worker} " in line]
            return not said or " is UP" in said[-1]
        self.wait_until(up, f"{worker} is not up")

    def refused(self) -> list:
        """HAProxy's log lines of replies of status 500 and above. The letters behind the sizes, such as SH, say on which side
        and in which phase the request ended (HAProxy's manual, "Session state at disconnection")."""
        return [line for line in self.log().splitlines() if re.search(r"clients~ \S+ [-+/\d]+ 5\d\d ", line)]

    def ways(self) -> set:
        """The servers to which HAProxy sent requests for text, by HAProxy's names."""
        return set(re.findall(r'clients~ \w+/(\S+) .* "POST /v1/completions', self.log()))

    def stop(self):
        for one in reversed(self.processes.values()):
            if one.poll() is None:
                one.terminate()
                try:
                    one.wait(10)
                except subprocess.TimeoutExpired:
                    one.kill()
                    one.wait()
        shutil.rmtree(self.folder)
