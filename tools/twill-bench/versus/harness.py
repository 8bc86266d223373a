"""What the scripts in this folder share: programs, servers that a measurement starts and ends, turns, and Markdown tables.

A script imports this module from its own folder and holds only what it measures.
"""

import argparse
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]  # of the repository


def parser(text: str, **more) -> argparse.ArgumentParser:
    """Prints `text`, the script's docstring, unchanged as its help."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter, **more)


def program(name: str) -> str:
    """The path of one of twill's programs: in the folder that TWILL_BIN names, else in that of the release build."""
    return str(pathlib.Path(os.environ.get("TWILL_BIN", "build/release/bin"), name).resolve())


def output(command: list, **more) -> str:
    """What the command writes to standard output. The script ends where the command fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server on this machine, started for a measurement. It takes requests once this is made.

    `ready` is a path that answers with status 200 as soon as the server takes requests. What the server prints is shown where it
    does not start, and where the measurement fails.
    """

    def __init__(self, command: list, port: int, ready: str, patience_s: float = 60, secure: bool = False):
        self.port = port
        self.context = ssl._create_unverified_context() if secure else None
        self.url = f"http{'s' if secure else ''}://127.0.0.1:{port}"
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=self.log)
        self.pid = self.process.pid
        try:
            self._wait(ready, time.monotonic() + patience_s)
        except BaseException:
            self.end(show_log=True)
            raise

    def _wait(self, ready: str, until: float):
        while True:
            try:
                if self.call("GET", ready)[0] == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.process.args[0]} ended with status {self.process.returncode} before it was ready")
            if time.monotonic() > until:
                raise RuntimeError(f"{self.process.args[0]} was not ready in time")
            time.sleep(0.05)

    def request(self, method: str, path: str, body=None) -> http.client.HTTPResponse:
        """`body` is sent as JSON."""
        link = (http.client.HTTPSConnection("127.0.0.1", self.port, timeout=600, context=self.context) if self.context else
                http.client.HTTPConnection("127.0.0.1", self.port, timeout=600))
        link.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        return link.getresponse()

    def call(self, method: str, path: str, body=None) -> tuple:
        """Status and text of an answer."""
        with self.request(method, path, body) as reply:
            return reply.status, reply.read().decode()

    def resident_bytes(self) -> int:
        with open(f"/proc/{self.pid}/status") as status:
            return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))

    def end(self, how: int = signal.SIGTERM, show_log: bool = False):
        self.process.send_signal(how)
        self.process.wait()
        if show_log:
            self.log.seek(0)
            sys.stderr.write(self.log.read()[-2000:].decode(errors="replace"))
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.end(show_log=kind is not None)


def twilld(folder, *settings: str, model: str = "", secure: bool = False) -> Server:
    """`folder`/twilld with the settings that `--set` takes; without `model`, on the default model."""
    port = free_port()
    command = [f"{folder}/twilld", "--listen", f"127.0.0.1:{port}", *(["--model", model] if model else [])]
    for one in ("log.level=warn", *settings):
        command += ["--set", one]
    return Server(command, port, "/ready", secure=secure)


def null_server(program_path, *flags) -> Server:
    """`twill-bench null`, which answers every backend's requests and computes nothing."""
    port = free_port()
    return Server([program_path, "null", "--listen", f"127.0.0.1:{port}", *flags], port, "/v1/models")


def in_turn(what, round_number: int) -> list:
    """Every other round runs backwards, so that a drift of the machine's speed favours nobody."""
    return list(what) if round_number % 2 == 0 else list(what)[::-1]


def spread(values, form: str = ",.0f") -> str:
    """Median (least to most), each in Python's format `form`."""
    middle, least, most = (format(value, form) for value in (statistics.median(values), min(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({least} to {most})"


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def heading(*names):
    row(*names)
    print("|" + "---|" * len(names), flush=True)
