"""Disconnects, slow readers, many sessions, drain: what a client does never hurts another."""

import fcntl
import json
import os
import re
import signal
import socket as sockets
import struct
import subprocess
import sys
import threading
import time

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

LONG = {"prompt": "Once upon a time", "max_tokens": 2000, "temperature": 0, "ignore_eos": True, "stream": True}


def start_stream(daemon, body) -> sockets.socket:
    text = json.dumps(body).encode()
    socket = daemon.raw()
    socket.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   b"Content-Length: %d\r\n\r\n" % len(text) + text)
    return socket


def reset(socket: sockets.socket):
    """Closes with a TCP reset, as a killed client's kernel may."""
    socket.setsockopt(sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0))
    socket.close()


def test_disconnect_while_decoding_frees_every_block(daemon):
    stream = start_stream(daemon, LONG)
    assert b"data:" in stream.recv(4096) + stream.recv(4096)
    assert daemon.metric("twill_kv_blocks_used") > 0
    reset(stream)
    daemon.wait_metric("twill_kv_blocks_used", 0)
    assert daemon.metric("twill_num_requests_running") == 0


def test_disconnect_in_prefill_frees_every_block(daemon):
    for delay in (0.0, 0.02, 0.1):
        stream = start_stream(daemon, {**LONG, "prompt": [300 + i % 4000 for i in range(4000)]})
        time.sleep(delay)
        reset(stream)
        daemon.wait_metric("twill_kv_blocks_used", 0)


def test_disconnect_while_queued(start_daemon):
    daemon = start_daemon("scheduler.max_running=1", "kv.memory=64MiB")
    running = start_stream(daemon, LONG)
    running.recv(4096)
    waiting = [start_stream(daemon, LONG) for _ in range(5)]
    daemon.wait_metric("twill_num_requests_waiting", 5)
    for stream in waiting:
        reset(stream)
    daemon.wait_metric("twill_num_requests_waiting", 0)
    assert daemon.metric("twill_num_requests_running") == 1
    reset(running)
    daemon.wait_metric("twill_kv_blocks_used", 0)


def test_whole_reply_disconnect_frees_every_block(daemon):
    stream = start_stream(daemon, {**LONG, "stream": False})
    time.sleep(0.3)
    assert daemon.metric("twill_num_requests_running") == 1
    stream.close()
    daemon.wait_metric("twill_kv_blocks_used", 0)


def test_killed_and_stopped_clients_leave_others_unharmed(daemon):
    script = ("import sys, json\nfrom websockets.sync.client import connect\n"
              "s = connect(sys.argv[1] + '/v1/stream', compression=None)\n"
              "s.send(json.dumps({'op': 'submit', 'id': 'k', 'prompt': 'Once', 'max_tokens': 7000,"
              " 'ignore_eos': True}))\n"
              "print(s.recv(), flush=True)\nwhile True: s.recv()\n")
    clients = [subprocess.Popen([sys.executable, "-c", script, daemon.ws], stdout=subprocess.PIPE) for _ in range(2)]
    for client in clients:
        assert client.stdout.readline()
    expected = daemon.complete("The capital of France is", max_tokens=8)["choices"][0]["text"]
    clients[0].send_signal(signal.SIGKILL)
    clients[1].send_signal(signal.SIGSTOP)
    for _ in range(3):
        assert daemon.complete("The capital of France is", max_tokens=8)["choices"][0]["text"] == expected
    clients[1].send_signal(signal.SIGKILL)
    for client in clients:
        client.wait(10)
    daemon.wait_metric("twill_kv_blocks_used", 0, 10)


def test_a_slow_reader_is_paused_then_cut_off(start_daemon):
    daemon = start_daemon("server.max_write_queue=64KiB", "server.slow_reader_timeout=1s", "model.compute=int8")
    stream = daemon.raw()
    stream.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    bodies = json.dumps({**LONG, "max_tokens": 6000, "n": 8, "logprobs": 5}).encode()
    stream.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   b"Content-Length: %d\r\n\r\n" % len(bodies) + bodies)
    stream.recv(1000)
    before = daemon.memory_bytes()
    daemon.wait_metric("twill_kv_blocks_used", 0, 90)  # the slow reader was cut off and its blocks were released
    assert daemon.memory_bytes() - before < 256 << 20
    assert daemon.complete("x", max_tokens=1)["choices"]
    stream.close()


def test_sigterm_drains(start_daemon):
    daemon = start_daemon("server.drain_timeout=20s")
    result = {}

    def run():
        result["reply"] = daemon.complete("Once upon a time", max_tokens=200, ignore_eos=True)

    thread = threading.Thread(target=run)
    thread.start()
    daemon.wait_metric("twill_num_requests_running", 1)
    daemon.process.terminate()
    time.sleep(0.1)
    thread.join(30)
    assert result["reply"]["usage"]["completion_tokens"] == 200
    assert daemon.process.wait(20) == 0


def test_sigterm_past_the_deadline_ends_streams_with_an_error_frame(start_daemon):
    daemon = start_daemon("server.drain_timeout=500ms")
    with connect(daemon.ws + "/v1/stream", compression=None) as socket:
        socket.send(json.dumps({"op": "submit", "id": "a", "prompt": "Once", "max_tokens": 7000, "ignore_eos": True}))
        socket.recv(timeout=20)
        daemon.process.terminate()
        last = None
        try:
            while True:
                last = json.loads(socket.recv(timeout=20))
        except ConnectionClosed:
            pass
        assert "error" in last, last
    assert daemon.process.wait(20) == 0


def test_a_full_stderr_holds_up_neither_requests_nor_the_end(start_daemon):
    read, write = os.pipe()
    fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, 4096)
    daemon = start_daemon("log.level=debug", stderr=write)
    os.close(write)
    long_path = "/" + 30_000 * "x"  # the path is written to the log

    def fill():
        for _ in range(180):
            assert daemon.request("GET", long_path, timeout=10)[0] == 404

    fill()
    assert daemon.complete("Hello", max_tokens=2)["usage"]["completion_tokens"] == 2
    ready = json.loads(daemon.request("GET", "/ready")[2])
    assert ready["status"] == "ready" and "does not take the log" in ready["log"]
    assert (dropped := daemon.metric("twill_log_lines_dropped_total")) > 20
    log = b""
    while not log.endswith(b"standard error did not take the log\n"):
        log += (piece := os.read(read, 1 << 20))
        assert piece
    lines = log.decode().splitlines()
    told = [int(found[1]) for line in lines if (found := re.search(r"(\d+) lines were dropped here", line))]
    assert sum(told) >= dropped, told
    assert sum(long_path in line for line in lines) > 100
    assert daemon.request("GET", "/ready")[2] == b'{"status":"ready"}'
    fill()
    with start_stream(daemon, LONG) as stream:
        assert stream.recv(10)
        daemon.process.terminate()
        time.sleep(0.2)
        assert daemon.process.poll() is None  # the stream may finish
        daemon.process.terminate()
        assert daemon.process.wait(10) == 0
    os.close(read)


def test_a_thousand_idle_sessions_and_64_streams(daemon):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    before = daemon.memory_bytes()
    import base64
    idle = []
    try:
        for _ in range(1000):
            socket = daemon.raw()
            key = base64.b64encode(os.urandom(16)).decode()
            socket.sendall(f"GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
            idle.append(socket)
        for socket in idle:
            assert b"101" in socket.recv(4096)
        per_session = (daemon.memory_bytes() - before) / 1000
        streams = [start_stream(daemon, {**LONG, "max_tokens": 16, "stream": False}) for _ in range(64)]
        for stream in streams:
            reply = b""
            while b'"usage"' not in reply:
                part = stream.recv(65536)
                assert part, reply
                reply += part
            stream.close()
        print(f"\nidle session: {per_session / 1024:.1f} KiB each; resident with 1000 idle and 64 streams: "
              f"{daemon.memory_bytes() / (1 << 20):.0f} MiB")
        assert per_session < 32 * 1024
    finally:
        for socket in idle:
            socket.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
