"""kill -9 again and again: the next daemon serves at once, KV on disk is found, and clients see that their streams broke off."""

import http.client
import json
import os
import signal
import socket
import statistics
import subprocess
import time

import pytest

from conftest import BIN

ROUNDS = 30


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def ask(port: int, path: str, body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST" if body else "GET", path, json.dumps(body) if body else None,
                       {"Content-Type": "application/json"})
    return connection.getresponse()


def wait_until_ready(port: int, process) -> int:
    """The status of the first answer of /ready that is not 'connection refused' or 'loading'."""
    while True:
        assert process.poll() is None
        try:
            if (status := ask(port, "/ready").status) == 200:
                return status
            assert status == 503
        except ConnectionError:
            pass
        time.sleep(0.005)


@pytest.mark.skipif(not os.environ.get("TWILL_LONG"), reason="takes a minute: tools/test --long")
def test_a_daemon_that_is_killed_again_and_again_serves_at_once(tmp_path):
    port = free_port()
    (tmp_path / "kv").mkdir(mode=0o700)
    command = [BIN / "twilld", "--listen", f"127.0.0.1:{port}", "--set", "kv.disk_memory=64MiB", "--set",
               f"kv.disk_dir={tmp_path / 'kv'}", "--set", "kv.keep=true"]
    if model := os.environ.get("TWILL_DEFAULT_MODEL"):
        command += ["--model", model]
    prompt = "Once upon a time, in a small house at the edge of a large forest, there lived an old woman. " * 6
    times, cached = [], []
    for i in range(ROUNDS):
        with open(tmp_path / "log", "w") as log:
            begin = time.monotonic()
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until_ready(port, process)
            times.append(time.monotonic() - begin)
            reply = json.loads(ask(port, "/v1/completions", {"prompt": prompt, "max_tokens": 1}).read())
            cached.append(reply["usage"]["prompt_tokens_details"]["cached_tokens"])
            # When the daemon dies, a client that streams sees its connection end, and no false end of the reply.
            stream = ask(port, "/v1/completions",
                         {"prompt": f"{i}", "max_tokens": 2000, "ignore_eos": True, "stream": True})
            assert stream.readline().startswith(b"data: ")
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        begin = time.monotonic()
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            text = stream.read()
            assert b"[DONE]" not in text
            raise http.client.IncompleteRead(text)
        assert time.monotonic() - begin < 5
        with pytest.raises(ConnectionRefusedError):
            ask(port, "/ready")
    times.sort()
    print(f"\nready after {times[0]:.2f} s at best, {statistics.median(times):.2f} s in the middle, {times[-1]:.2f} s at worst")
    print(f"cached prompt tokens of each round: {cached}")
    assert statistics.median(times) < 1
    assert cached[0] == 0 and min(cached[2:]) > 0, cached
