"""Workers and routers. The daemons are those of the clients' tests."""

import contextlib
import importlib.util
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import time

import pytest
from events import Subscriber
from example import Example

HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = HERE.parent / "clients" / "conftest.py"
spec = importlib.util.spec_from_file_location("clients_conftest", CLIENTS)
clients = importlib.util.module_from_spec(spec)
spec.loader.exec_module(clients)
scripted_model = clients.scripted_model
TINY = "dummy:opt-125m?layers=1&vocab=1000"


def free_port() -> int:
    """Below those that the kernel gives to connections, one of which might take it before it is listened on."""
    while True:
        port = random.randrange(15000, 32000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class Worker:
    """A twilld at a fixed address, which can be ended and begun again there."""

    def __init__(self, *settings: str, **how):
        self.port, self.events_port = free_port(), free_port()
        self.events = f"tcp://127.0.0.1:{self.events_port}"
        self.settings = (f"server.listen=127.0.0.1:{self.port}", *settings)
        self.how = how
        self.begin()

    def begin(self):
        settings = [one.replace("EVENTS", self.events) for one in self.settings]
        self.daemon = clients.Daemon(*settings, **self.how)
        self.url = self.daemon.url

    def stop(self):
        self.daemon.stop()

    def kill(self):
        self.daemon.process.kill()
        self.daemon.end()

    def cached_tokens(self) -> float:
        """Of all prompts so far."""
        return self.daemon.metric("twill_prefix_cache_hits_total")


class Router:
    """A vllm-router in front of workers."""

    def __init__(self, workers, *options: str, events: bool = True):
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory()
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        command = [sys.executable, HERE / "launch_vllm_router.py", "--host", "127.0.0.1", "--port", str(self.port),
                   "--prometheus-port", str(free_port()), "--worker-urls", *[one.url for one in workers],
                   "--worker-startup-check-interval", "1", "--health-check-interval-secs", "2", *options]
        if events:
            for one in workers:
                command += ["--kv-event-source", f"{one.url}={one.events}"]
            command += ["--kv-event-block-size", "16", "--kv-event-model", workers[0].daemon.model()]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self.host = "127.0.0.1"
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise

    def wait(self):
        deadline = time.monotonic() + 60
        while True:
            assert self.process.poll() is None, "the router ended early:\n" + self.text_of_log()
            assert time.monotonic() < deadline, "the router was not ready within 60 s:\n" + self.text_of_log()[-3000:]
            try:
                if self.request("GET", "/health")[0] == 200:
                    break
            except OSError:
                pass
            time.sleep(0.1)

    request = clients.Daemon.request
    post = clients.Daemon.post

    def text_of_log(self) -> str:
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()


@pytest.fixture
def fleet():
    """Makes workers, routers and subscribers that end with the test."""
    made = []

    class Maker:
        free_port = staticmethod(free_port)

        @staticmethod
        def worker(*settings, **how):
            made.append(Worker(*settings, **how))
            return made[-1]

        @staticmethod
        def router(*arguments, **how):
            made.append(Router(*arguments, **how))
            return made[-1]

        @staticmethod
        def subscriber(*arguments):
            made.append(Subscriber(*arguments))
            return made[-1]

        @staticmethod
        def example(*settings, router: str = "vllm-router", cut: bool = True, model: str = TINY):
            made.append(Example(Maker.worker, free_port, router, cut, *settings, model=model))
            return made[-1]

    yield Maker
    for one in reversed(made):
        one.stop()
