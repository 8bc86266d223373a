#!/usr/bin/env python3
"""Measures what a streamed token costs a daemon whose model computes nothing, with and without TLS and API keys. Prints
one Markdown table.

    token_cost.py BIN [--streams 128] [--seconds 5] [--rounds 3] [--certificate PEM --key PEM]

Starts `BIN/twilld` with dummy:null and keeps --streams streams busy, each on a socket of its own. The variants take
turns. The client shares the machine, so tokens/s depend on both sides. Microseconds are the daemon's processor time per
token: `net` is the thread that serves the sockets, `actors` all other threads. System calls are counted with perf,
where the system allows that, in a separate period after the timed one.
"""

import base64
import contextlib
import os
import pathlib
import re
import selectors
import socket
import ssl
import statistics
import subprocess
import threading
import time

from harness import ROOT, heading, in_turn, parser, row, twilld

KEY = "twk_" + "k" * 43


def sse(key: str):
    body = b'{"prompt":[5,6,7],"max_tokens":1000,"ignore_eos":true,"stream":true}'
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n{key}Content-Length: {len(body)}\r\n\r\n"
    return b"", head.encode() + body, b"[DONE]"


def websocket(key: str):
    text = b'{"op":"submit","id":1,"tokens":[5,6,7],"max_tokens":1000,"ignore_eos":true}'
    upgrade = ("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
               f"Sec-WebSocket-Version: 13\r\n{key}Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n\r\n")
    return upgrade.encode(), bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text, b'"done"'


class Streams:
    """A client that reads all streams on a thread of its own, and sends a new request when a stream ends."""

    def __init__(self, port: int, n: int, dialect, secure: bool):
        key = f"Authorization: Bearer {KEY}\r\n" if secure else ""
        self.first, self.request, self.end = dialect(key)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.selector = selectors.DefaultSelector()
        for _ in range(n):
            one = socket.create_connection(("127.0.0.1", port))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if secure:
                one = context.wrap_socket(one)
            if self.first:
                one.sendall(self.first)
                reply = one.recv(4096)
                assert b" 101 " in reply, reply
            one.sendall(self.request)
            one.setblocking(False)
            self.selector.register(one, selectors.EVENT_READ)
        self.stopping = False
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        while not self.stopping:
            for key, _ in self.selector.select(0.1):
                try:
                    while data := key.fileobj.recv(65536):
                        if self.end in data:
                            key.fileobj.setblocking(True)
                            key.fileobj.sendall(self.request)
                            key.fileobj.setblocking(False)
                        if len(data) < 16384:
                            break
                except (ssl.SSLWantReadError, BlockingIOError):
                    pass

    def close(self):
        self.stopping = True
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()


class Daemon:
    def __init__(self, arguments, secure: bool):
        settings = [f"scheduler.max_running={arguments.streams}", "log.level=error"]
        if secure:
            settings += [f"server.tls_certificate={arguments.certificate}", f"server.tls_key={arguments.key}",
                         f"server.api_keys=['{KEY}']"]
        self.server = twilld(arguments.bin, *settings, model="dummy:null", secure=secure)

    def tokens(self) -> float:
        text = self.server.call("GET", "/metrics")[1]
        return sum(float(v) for v in re.findall(r"^twill_generation_tokens_total(?:{[^}]*})? (\S+)$", text, re.M))

    def processor_seconds(self) -> tuple:
        net = actors = 0.0
        for task in pathlib.Path(f"/proc/{self.server.pid}/task").iterdir():
            seconds = int((task / "schedstat").read_text().split()[0]) / 1e9
            if int(task.name) == self.server.pid:
                net += seconds
            else:
                actors += seconds
        return net, actors

    def system_calls(self, seconds: float) -> tuple:
        """System calls per token of the net thread and of all other threads; None where perf may not count them."""
        command = ["perf", "stat", "-x", ";", "--per-thread", "-e", "raw_syscalls:sys_enter", "-p", str(self.server.pid),
                   "sleep", str(seconds)]
        before = self.tokens()
        try:
            done = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        except FileNotFoundError:
            return None, None
        tokens = self.tokens() - before
        rows = re.findall(r"^.*-(\d+);(\d+);", done.stderr, re.M)
        if done.returncode != 0 or not rows or not tokens:
            return None, None
        net = sum(int(n) for tid, n in rows if int(tid) == self.server.pid)
        return net / tokens, (sum(int(n) for _, n in rows) - net) / tokens


def measure(arguments, dialect, secure: bool) -> dict:
    daemon = Daemon(arguments, secure)
    with daemon.server, contextlib.closing(Streams(daemon.server.port, arguments.streams, dialect, secure)):
        time.sleep(1)
        tokens, began, (net, actors) = daemon.tokens(), time.monotonic(), daemon.processor_seconds()
        time.sleep(arguments.seconds)
        n, took, (net_end, actors_end) = daemon.tokens() - tokens, time.monotonic() - began, daemon.processor_seconds()
        calls = daemon.system_calls(min(2.0, arguments.seconds))
    return {"tokens/s": n / took, "net us": 1e6 * (net_end - net) / n, "actors us": 1e6 * (actors_end - actors) / n,
            "all us": 1e6 * (net_end - net + actors_end - actors) / n, "net calls": calls[0], "actors calls": calls[1]}


def main() -> None:
    flags = parser(__doc__)
    flags.add_argument("bin")
    flags.add_argument("--streams", type=int, default=128)
    flags.add_argument("--seconds", type=float, default=5)
    flags.add_argument("--rounds", type=int, default=3)
    flags.add_argument("--certificate", default=ROOT / "tests/clients/tls/first.pem")
    flags.add_argument("--key", default=ROOT / "tests/clients/tls/first.key")
    arguments = flags.parse_args()
    variants = [(name, dialect, secure) for name, dialect in (("SSE", sse), ("WebSocket", websocket))
                for secure in (False, True)]
    found = {(name, secure): [] for name, _, secure in variants}
    for number in range(arguments.rounds):
        for name, dialect, secure in in_turn(variants, number):
            found[name, secure].append(measure(arguments, dialect, secure))
    columns = ["tokens/s", "net us", "actors us", "all us", "net calls", "actors calls"]
    heading("streams", *columns, "than plain")
    medians = {}
    for (name, secure), rows in found.items():
        cells = []
        for column in columns:
            values = [row[column] for row in rows if row[column] is not None]
            medians[name, secure, column] = statistics.median(values) if values else None
            cells.append("-" if not values else f"{medians[name, secure, column]:.0f}" if column == "tokens/s" else
                         f"{medians[name, secure, column]:.3f}")
        more = medians[name, secure, "all us"] / medians[name, False, "all us"] - 1
        row(f"{arguments.streams} {name}{', TLS and keys' if secure else ''}", *cells, f"{more:+.1%}")


if __name__ == "__main__":
    main()
