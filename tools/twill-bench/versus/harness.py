"""Shared code of the scripts in this folder: programs, servers that a measurement starts and ends, the order of turns, and
Markdown tables.

A script imports this module from its own folder and contains only the code of its own measurement.
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
    """An argument parser that prints `text`, the script's docstring, unchanged as its help."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter, **more)


def program(name: str) -> str:
    """The path of one of twill's programs: in the folder that TWILL_BIN names, else in the folder of the release build."""
    return str(pathlib.Path(os.environ.get("TWILL_BIN", "build/release/bin"), name).resolve())


def output(command: list, **more) -> str:
    """Runs a command and returns what it writes to standard output. The script ends when the command fails."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """A server on this machine that is started for a measurement. The constructor returns when the server takes requests.

    `ready` is a path that gives status 200 as soon as the server takes requests. The output of the server is shown when
    the server does not start, and when the measurement fails.
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
        """Sends a request, with `body` as JSON."""
        link = (http.client.HTTPSConnection("127.0.0.1", self.port, timeout=600, context=self.context) if self.context else
                http.client.HTTPConnection("127.0.0.1", self.port, timeout=600))
        link.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        return link.getresponse()

    def call(self, method: str, path: str, body=None) -> tuple:
        """Sends a request and returns the status and the text of the reply."""
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
    """Starts `folder`/twilld with these settings, in the form of `--set`; without `model`, on the default model."""
    port = free_port()
    command = [f"{folder}/twilld", "--listen", f"127.0.0.1:{port}", *(["--model", model] if model else [])]
    for one in ("log.level=warn", *settings):
        command += ["--set", one]
    return Server(command, port, "/ready", secure=secure)


def null_server(program_path, *flags) -> Server:
    """Starts `twill-bench null`, which answers every backend's requests and computes nothing."""
    port = free_port()
    return Server([program_path, "null", "--listen", f"127.0.0.1:{port}", *flags], port, "/v1/models")


def in_turn(what, round_number: int) -> list:
    """The order for a round. Every other round is in reverse order, so that a drift of the machine's speed favours nobody."""
    return list(what) if round_number % 2 == 0 else list(what)[::-1]


def spread(values, form: str = ",.0f") -> str:
    """"median (least to most)", with each number in Python's format `form`."""
    middle, least, most = (format(value, form) for value in (statistics.median(values), min(values), max(values)))
    return middle if len(values) == 1 else f"{middle} ({least} to {most})"


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def heading(*names):
    row(*names)
    print("|" + "---|" * len(names), flush=True)
