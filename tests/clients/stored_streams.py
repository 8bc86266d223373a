"""Clients that lose no event of a stored response although the daemon is stopped or killed under them.

A stream continues with `starting_after`, a little before the event where it was broken off, and takes each number once: an
event that comes again must have the same bytes.
"""

import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from conftest import BIN

LAST = {"response.completed", "response.incomplete", "response.failed"}
BROKEN = (OSError, EOFError, http.client.HTTPException, ConnectionClosed, InvalidHandshake, TimeoutError)
OVERLAP = 3  # how many events are read twice on purpose


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class RestartableDaemon:
    """A twilld that keeps its port and its folder of stored responses over restarts."""

    def __init__(self, folder, *settings, model="tiny"):
        """`model` is the name of the default model, or None if `settings` name models."""
        self.port = free_port()
        self.folder = folder / "responses"
        self.log = folder / "log"
        self.command = [BIN / "twilld", "--listen", f"127.0.0.1:{self.port}", "--set",
                        f"responses.folder={self.folder}"]
        if model is not None:
            self.command += ["--set", f"model.name={model}"]
            if path := os.environ.get("TWILL_DEFAULT_MODEL"):
                self.command += ["--model", path]
        self.settings = settings
        self.headers = {}
        self.process = None

    def start(self):
        with open(self.log, "a") as log:
            command = self.command + [word for one in self.settings for word in ("--set", one)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            assert self.process.poll() is None, self.text_of_log()[-3000:]
            assert time.monotonic() < deadline, "twilld was not ready within 60 s"
            try:
                if self.ask("GET", "/ready")[0] == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.02)

    def end(self, how=signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(60)

    def restart(self, how):
        status = self.end(how)
        assert status == (0 if how == signal.SIGTERM else -how), self.text_of_log()[-3000:]
        self.start()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, method, path, body=None, headers=None):
        connection = self.connection()
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json", **self.headers, **(headers or {})})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    def get(self, id, rest="", headers=None):
        return self.ask("GET", f"/v1/responses/{id}{rest}", headers=headers)

    def response(self, id):
        status, text = self.get(id)
        assert status == 200, text
        return json.loads(text)

    def post(self, body):
        status, text = self.ask("POST", "/v1/responses", body)
        assert status == 200, text
        return json.loads(text)

    def ended(self, id, seconds=120):
        """Waits until the response has ended, and returns it."""
        deadline = time.monotonic() + seconds
        while (response := self.response(id))["status"] in ("queued", "in_progress"):
            assert time.monotonic() < deadline, response
            time.sleep(0.02)
        return response

    def metric(self, name) -> float:
        text = self.ask("GET", "/metrics")[1].decode()
        return sum(float(found) for found in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M))

    def text_of_log(self) -> str:
        return self.log.read_text()


class Stream:
    """One response and what has been read of it: `events` maps numbers to events, as they came."""

    def __init__(self, daemon, way, body):
        self.daemon, self.way, self.body = daemon, way, body
        self.id = None
        self.events = []
        self.error = None
        self.breaks = 0
        self.socket = None

    def take(self, text: str) -> bool:
        """Takes one event; returns whether it is the last. Data without a number is no event of the response."""
        event = json.loads(text)
        if "sequence_number" not in event:
            assert event.get("error", {}).get("code") in ("interrupted", "shutting_down"), text
            raise EOFError
        number = event["sequence_number"]
        assert number <= len(self.events), f"event {len(self.events)} is missing before {text}"
        if number < len(self.events):
            assert self.events[number] == text, "another event has come under the same number"
        else:
            self.events.append(text)
        if "response" in event:
            assert self.id in (None, event["response"]["id"])
            self.id = event["response"]["id"]
        return event["type"] in LAST

    def read_sse(self, reply) -> None:
        for line in reply:
            if line.startswith(b"data: ") and self.take(line[6:].decode().rstrip("\n")):
                return
        raise EOFError

    def over_http(self, method, path, body=None, headers=None):
        connection = self.daemon.connection()
        try:
            connection.request(method, path, body and json.dumps(body),
                               {"Content-Type": "application/json", **(headers or {})})
            self.socket = connection.sock
            reply = connection.getresponse()
            if reply.status == 503:
                raise EOFError
            assert reply.status == 200, (reply.status, reply.read(), self.id)
            return self.read_sse(reply)
        finally:
            self.socket = None
            connection.close()

    def over_websocket(self):
        with connect(f"ws://127.0.0.1:{self.daemon.port}/v1/responses", compression=None, open_timeout=60) as to:
            self.socket = to.socket
            to.send(json.dumps({"type": "response.create", **self.body}))
            while not self.take(to.recv(timeout=120)):
                pass

    def in_background(self):
        status, text = self.daemon.ask("POST", "/v1/responses", {**self.body, "background": True})
        if status == 503:
            raise EOFError
        assert status == 200, text
        self.id = json.loads(text)["id"]

    def begin(self):
        if self.way == "websocket":
            self.over_websocket()
        elif self.way == "sse":
            self.over_http("POST", "/v1/responses", {**self.body, "stream": True})
        else:
            self.in_background()

    def go_on(self):
        if self.way != "background":
            after = len(self.events) - 1 - OVERLAP
            return self.over_http("GET", f"/v1/responses/{self.id}?stream=true" +
                                  (f"&starting_after={after}" if after >= 0 else ""))
        while (response := self.daemon.get(self.id))[0] in (200, 503):
            if response[0] == 200 and json.loads(response[1])["status"] not in ("queued", "in_progress"):
                return None
            time.sleep(0.05)
        raise AssertionError(response)

    def run(self):
        """Reads the response to its end, over all restarts."""
        deadline = time.monotonic() + 600
        try:
            while True:
                begun = self.id is not None
                try:
                    self.go_on() if begun else self.begin()
                    if begun or self.way != "background":
                        return
                except BROKEN:
                    self.breaks += 1
                    assert time.monotonic() < deadline, f"{self.way} {self.id} has not ended"
                    time.sleep(0.05)
        except AssertionError as error:
            self.error = error

    def reset(self):
        """Breaks the connection as a client's lost network does."""
        if (one := self.socket) is not None:
            try:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def start(self):
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        return self


def wait_for_events(streams, wanted: int):
    deadline = time.monotonic() + 300  # a busy machine may take minutes to compile a grammar
    while sum(len(one.events) for one in streams) < wanted and any(one.thread.is_alive() for one in streams):
        assert time.monotonic() < deadline, f"{sum(len(one.events) for one in streams)} events of {wanted}"
        time.sleep(0.002)


def break_off(daemon, streams, total: int, restarts: int, resets: int, dice):
    """Restarts the daemon and resets connections, spread over the time in which `streams` get `total` events."""
    moments = [(i + dice.uniform(0.1, 0.9)) / (restarts + 1) for i in range(restarts)]
    faults = sorted([(at, "restart") for at in moments] + [(dice.random(), "reset") for _ in range(resets)])
    for at, what in faults:
        wait_for_events(streams, int(total * at))
        if what == "reset":
            dice.choice(streams).reset()
        else:
            daemon.restart(dice.choice((signal.SIGKILL, signal.SIGTERM)))


def content(events) -> list:
    """The events, without the members in which two responses to the same request differ."""
    said = []
    for text in events:
        event = json.loads(text) if isinstance(text, str) else dict(text)
        response = event.pop("response", None)
        said.append(json.loads(without_ids(json.dumps(event))))
        if response is not None and event["type"] in LAST:
            said.append(output(response))
    return said


def output(response) -> tuple:
    usage = response["usage"] or {}
    return (response["status"], response["error"], without_ids(json.dumps(response["output"])),
            usage.get("input_tokens"), usage.get("output_tokens"))


def without_ids(text: str) -> str:
    return re.sub(r'": "((?:msg|fc|rs|call)_)[0-9A-Za-z_-]+"', r'": "\1"', text)
