"""Workers: daemons at fixed addresses, started as the tests of clients start them."""

import contextlib
import importlib.util
import pathlib
import random
import socket

HERE = pathlib.Path(__file__).resolve().parent
CLIENTS = HERE.parent / "clients" / "conftest.py"
spec = importlib.util.spec_from_file_location("clients_conftest", CLIENTS)
clients = importlib.util.module_from_spec(spec)
spec.loader.exec_module(clients)
TINY = "dummy:opt-125m?layers=1&vocab=1000"


given_ports = set()


def free_port() -> int:
    """Returns each port once. The ports are below those that the kernel gives to outgoing connections, since such a connection
    might take the port before a daemon listens on it."""
    while True:
        port = random.randrange(15000, 32000)
        if port in given_ports:
            continue
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            given_ports.add(port)
            return port


class Worker:
    """A twilld at a fixed address, which can be stopped and started again there."""

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
        """How many tokens of all prompts so far were cached."""
        return self.daemon.metric("twill_prefix_cache_hits_total")
