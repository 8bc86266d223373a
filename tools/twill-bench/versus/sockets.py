#!/usr/bin/env python3
"""Measures how much memory an open socket costs a daemon.

    sockets.py BIN [N]

Starts `BIN/twilld` with dummy:null and opens N (default 10,000) keep-alive HTTP sockets, each of which has had one
reply, or N WebSockets. Prints by how much the daemon's memory grows per socket. `ulimit -n` must be somewhat larger
than N.
"""

import base64
import os
import resource
import socket
import sys
import time

from harness import twilld


def until(sock: socket.socket, end: bytes) -> bytes:
    data = b""
    while end not in data:
        part = sock.recv(4096)
        if not part:
            raise ConnectionError(f"the daemon closed after {data!r}")
        data += part
    return data


def connect(port: int, source: int) -> socket.socket:
    # One loopback address has too few ports for all sockets, so they use several source addresses.
    return socket.create_connection(("127.0.0.1", port), 30, source_address=(f"127.0.0.{2 + source // 5000}", 0))


def open_http(port: int, number: int) -> socket.socket:
    sock = connect(port, number)
    sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(sock, b"\r\n\r\n")
    return sock


def open_websocket(port: int, number: int) -> socket.socket:
    sock = connect(port, number)
    key = base64.b64encode(os.urandom(16))
    sock.sendall(b"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n")
    until(sock, b"\r\n\r\n")
    return sock


def measure(bin_folder: str, name: str, opened, n: int) -> None:
    with twilld(bin_folder, f"server.max_connections={n + 100}", "server.idle_timeout=1h", "log.level=error",
                model="dummy:null") as daemon:
        opened(daemon.port, 0).close()
        before = daemon.resident_bytes()
        sockets = [opened(daemon.port, i) for i in range(n)]
        time.sleep(1)
        print(f"{name}: {n} sockets, {(daemon.resident_bytes() - before) / 1024 / n:.1f} KiB each", flush=True)
        for sock in sockets:
            sock.close()


def main() -> None:
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    measure(sys.argv[1], "HTTP", open_http, n)
    measure(sys.argv[1], "WebSocket", open_websocket, n)


if __name__ == "__main__":
    main()
