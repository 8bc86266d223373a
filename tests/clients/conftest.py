"""One daemon for each test session, on the real default model, and helpers that every client test uses."""

import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time

import pytest

BIN = pathlib.Path(os.environ["TWILL_BIN"])


class Daemon:
    """A running twilld: its address and metrics, and ways to stop it."""

    def __init__(self, *settings: str, model: str = "", folder=None, config=None, environment=None,
                 stderr=None):
        self.folder = tempfile.TemporaryDirectory(dir=folder)
        if folder:
            pathlib.Path(self.folder.name).chmod(0o777)  # the daemon may change to another user
        address_file = pathlib.Path(self.folder.name) / "address"
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+")
        command = [BIN / "twilld", "--address-file", address_file]
        if not any(setting.startswith("server.listen=") for setting in settings):
            command += ["--listen", "127.0.0.1:0"]
        model = model or os.environ.get("TWILL_DEFAULT_MODEL")
        if model and not any(setting.startswith("models.") for setting in settings):
            command += ["--model", model]
        if config:
            command += ["--config", config]
        for setting in settings:
            command += ["--set", setting]
        self.door = self.own_door(settings, config, folder)
        if self.door and self.door.parent == pathlib.Path(self.folder.name):
            command += ["--set", f"server.admin_listen=unix:{self.door}"]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=stderr or self.log,
                                        env={**os.environ, **(environment or {})})
        deadline = time.monotonic() + 60
        while not (address_file.exists() and address_file.read_text().strip()):
            assert self.process.poll() is None, "twilld ended early:\n" + self.text_of_log()
            assert time.monotonic() < deadline, "twilld was not ready within 60 s"
            time.sleep(0.02)
        tcp = [line.rsplit(":", 1) for line in address_file.read_text().splitlines() if line[:5] != "unix:"]
        self.host = tcp[0][0] if tcp else ""
        self.ports = [int(port) for _, port in tcp]
        self.port = self.ports[0] if tcp else 0
        self.url = f"http://{self.host}:{self.port}"
        self.ws = f"ws://{self.host}:{self.port}"

    def own_door(self, settings, config, folder):
        """The address of administrators' routes, where the ledger is read: an address of our own, unless the test configures one."""
        for setting in settings:
            if setting.startswith("server.admin_listen=unix:"):
                return pathlib.Path(setting.removeprefix("server.admin_listen=unix:"))
        texts = [*settings, pathlib.Path(config).read_text() if config else ""]
        if folder or any("admin_listen" in text for text in texts):
            return None
        return pathlib.Path(self.folder.name) / "door"

    def ledger(self):
        connection = http.client.HTTPConnection("localhost", timeout=30)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(self.door))
        try:
            connection.request("GET", "/admin/ledger")
            reply = connection.getresponse()
            return json.loads(reply.read()) if reply.status == 200 else None
        finally:
            connection.close()

    def check_ledger(self):
        """Checks that within 10 s no request runs and all that requests took has been given back."""
        deadline = time.monotonic() + 10
        while (now := self.ledger()) and (not now["at_rest"] or now["faults"]):
            assert time.monotonic() < deadline, "\n".join(
                ["what requests took does not add up:"] + now["faults"] if now["at_rest"] else ["requests are left"])
            time.sleep(0.01)

    def text_of_log(self) -> str:
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def stop(self):
        try:
            if self.door and self.process.poll() is None:
                self.check_ledger()
        except (OSError, http.client.HTTPException):
            pass  # it has stopped, or is stopping
        finally:
            self.end()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def request(self, method: str, path: str, body=None, headers=None, timeout=60):
        """Makes one HTTP exchange; returns status, headers and decoded body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            connection.request(method, path, body, {"Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            text = reply.read()
            return reply.status, dict(reply.getheaders()), text
        finally:
            connection.close()

    def post(self, path: str, body, **kwargs):
        status, _, text = self.request("POST", path, body, **kwargs)
        return status, json.loads(text)

    def complete(self, prompt, **fields):
        status, reply = self.post("/v1/completions", {"prompt": prompt, "temperature": 0, **fields})
        assert status == 200, reply
        return reply

    def model(self) -> str:
        return json.loads(self.request("GET", "/v1/models")[2])["data"][0]["id"]

    def metric(self, name: str) -> float:
        _, _, text = self.request("GET", "/metrics")
        found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? ([^\s]+)$", text.decode(), re.M)
        assert found, f"no metric {name}"
        return sum(float(v) for v in found)

    def wait_metric(self, name: str, wanted: float, seconds: float = 30.0):
        deadline = time.monotonic() + seconds
        while (found := self.metric(name)) != wanted:
            assert time.monotonic() < deadline, f"{name} stayed at {found}, expected {wanted}"
            time.sleep(0.01)

    def raw(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=30)

    def memory_bytes(self) -> int:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024


@pytest.fixture(scope="session")
def daemon():
    running = Daemon("model.compute=f32", "server.slow_reader_timeout=2s", "kv.memory=512MiB")
    yield running
    alive = running.process.poll() is None
    log = running.text_of_log()
    running.stop()
    assert alive, "twilld died during the tests:\n" + log[-3000:]


@pytest.fixture(scope="session")
def tool_daemon():
    """A daemon whose chat template shows tools; all tests of tools and schemas share the daemon."""
    template = pathlib.Path(__file__).resolve().parent / "tools.jinja"
    running = Daemon("model.compute=f32", "kv.memory=256MiB", f"model.chat_template={template}",
                     "model.tool_format=hermes")
    yield running
    alive = running.process.poll() is None
    log = running.text_of_log()
    running.stop()
    assert alive, "twilld died during the tests:\n" + log[-3000:]


@pytest.fixture
def start_daemon():
    started = []

    def start(*settings, **how):
        started.append(Daemon(*settings, **how))
        return started[-1]

    yield start
    faults = []
    for one in started:
        try:
            one.stop()
        except AssertionError as fault:
            faults.append(str(fault))
    assert not faults, "\n".join(faults)


@pytest.fixture
def scripted_model(tmp_path):
    """Writes models that answer every prompt with the given pieces; see tools/twill-synth/scripted.hpp."""
    def write(pieces, **script):
        number = len(list(tmp_path.iterdir()))
        path, model = tmp_path / f"script{number}.json", tmp_path / f"scripted{number}.gguf"
        path.write_text(json.dumps({"pieces": pieces, **script}))
        subprocess.run([BIN / "twill-synth", "scripted", model, "--script", path, "--quiet"], check=True, timeout=60)
        return str(model)

    return write
