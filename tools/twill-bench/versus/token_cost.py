#!/usr/bin/env python3
"""What a streamed token costs a daemon whose model computes nothing, with and without TLS and keys: one Markdown table.

    token_cost.py BIN [--streams 128] [--seconds 5] [--rounds 3] [--certificate PEM --key PEM]

Starts `BIN/twilld` with dummy:null and keeps so many streams busy, each on a socket of its own; variants take turns. The client
shares the machine, so tokens/s are both sides'. Microseconds are the daemon's processor time for each token: `net` is the
thread that serves the sockets, `actors` all others. System calls are counted by perf where it may, in a window after that.
"""

import argparse
import base64
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
import urllib.request

KEY = "twk_" + "k" * 43
ROOT = pathlib.Path(__file__).resolve().parents[3]


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
    """Reads all streams on a thread of its own, and asks anew when one ends."""

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
    def __init__(self, arguments, port: int, secure: bool):
        self.port, self.secure = port, secure
        command = [f"{arguments.bin}/twilld", "--model", "dummy:null", "--listen", f"127.0.0.1:{port}", "--set",
                   f"scheduler.max_running={arguments.streams}", "--set", "log.level=error"]
        if secure:
            command += ["--set", f"server.tls_certificate={arguments.certificate}", "--set",
                        f"server.tls_key={arguments.key}", "--set", f"server.api_keys=['{KEY}']"]
        self.process = subprocess.Popen(command)
        deadline = time.monotonic() + 30
        while True:
            try:
                self.tokens()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def tokens(self) -> float:
        context = ssl._create_unverified_context()
        url = f"http{'s' if self.secure else ''}://127.0.0.1:{self.port}/metrics"
        text = urllib.request.urlopen(url, context=context if self.secure else None).read().decode()
        return sum(float(v) for v in re.findall(r"^twill_generation_tokens_total(?:{[^}]*})? (\S+)$", text, re.M))

    def processor_seconds(self) -> tuple:
        net = actors = 0.0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            seconds = int((task / "schedstat").read_text().split()[0]) / 1e9
            if int(task.name) == self.process.pid:
                net += seconds
            else:
                actors += seconds
        return net, actors

    def system_calls(self, seconds: float) -> tuple:
        """Per token: of net, of actors; nothing where perf may not count them."""
        command = ["perf", "stat", "-x", ";", "--per-thread", "-e", "raw_syscalls:sys_enter", "-p", str(self.process.pid),
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
        net = sum(int(n) for tid, n in rows if int(tid) == self.process.pid)
        return net / tokens, (sum(int(n) for _, n in rows) - net) / tokens

    def stop(self):
        self.process.terminate()
        self.process.wait()


def measure(arguments, port: int, dialect, secure: bool) -> dict:
    daemon = Daemon(arguments, port, secure)
    streams = Streams(port, arguments.streams, dialect, secure)
    try:
        time.sleep(1)
        tokens, began, (net, actors) = daemon.tokens(), time.monotonic(), daemon.processor_seconds()
        time.sleep(arguments.seconds)
        n, took, (net_end, actors_end) = daemon.tokens() - tokens, time.monotonic() - began, daemon.processor_seconds()
        calls = daemon.system_calls(min(2.0, arguments.seconds))
    finally:
        streams.close()
        daemon.stop()
    return {"tokens/s": n / took, "net us": 1e6 * (net_end - net) / n, "actors us": 1e6 * (actors_end - actors) / n,
            "all us": 1e6 * (net_end - net + actors_end - actors) / n, "net calls": calls[0], "actors calls": calls[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--streams", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--certificate", default=ROOT / "tests/clients/tls/first.pem")
    parser.add_argument("--key", default=ROOT / "tests/clients/tls/first.key")
    arguments = parser.parse_args()
    variants = [(name, dialect, secure) for name, dialect in (("SSE", sse), ("WebSocket", websocket))
                for secure in (False, True)]
    found = {(name, secure): [] for name, _, secure in variants}
    for number in range(arguments.rounds):
        for i, (name, dialect, secure) in enumerate(variants if number % 2 == 0 else variants[::-1]):
            found[name, secure].append(measure(arguments, 18440 + i, dialect, secure))
    columns = ["tokens/s", "net us", "actors us", "all us", "net calls", "actors calls"]
    print("| streams | " + " | ".join(columns) + " | than plain |")
    print("|---" * (len(columns) + 2) + "|")
    medians = {}
    for (name, secure), rows in found.items():
        cells = []
        for column in columns:
            values = [row[column] for row in rows if row[column] is not None]
            medians[name, secure, column] = statistics.median(values) if values else None
            cells.append("-" if not values else f"{medians[name, secure, column]:.0f}" if column == "tokens/s" else
                         f"{medians[name, secure, column]:.3f}")
        more = medians[name, secure, "all us"] / medians[name, False, "all us"] - 1
        print(f"| {arguments.streams} {name}{', TLS and keys' if secure else ''} | " + " | ".join(cells) + f" | {more:+.1%} |")


if __name__ == "__main__":
    main()
