"""A disk that hangs or fails under weights that are streamed from it: what clients see, and how the daemon ends."""

import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
LONG = bool(os.environ.get("TWILL_LONG"))
MODEL = "dummy:opt-125m?hidden=128&heads=4&mlp=512&layers=4&vocab=1000"
STREAMED = ("model.compute=f32", "offload.device_percent=0", "offload.host_percent=0", "offload.ring_layers=2",
            "kv.memory=16MiB", "scheduler.watchdog=500ms", "scheduler.restart_delay=100ms", "server.drain_timeout=1s")
PROMPT = [5, 6, 7, 8]


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    made = tmp_path_factory.mktemp("shim") / "failing_reads.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", made, HERE / "failing_reads.c", "-ldl"], check=True)
    return made


class Disk:
    def __init__(self, orders: pathlib.Path):
        self.orders = orders

    def say(self, what: str):
        whole = self.orders.with_suffix(".new")
        whole.write_text(what)
        whole.rename(self.orders)


@pytest.fixture
def daemon_and_disk(shim, start_daemon, monkeypatch, tmp_path):
    disk = Disk(tmp_path / "orders")
    disk.say("")
    monkeypatch.setenv("LD_PRELOAD", str(shim))
    monkeypatch.setenv("TWILL_FAILING_PATH", "twill-offload-")
    monkeypatch.setenv("TWILL_FAILING_ORDERS", str(disk.orders))
    daemon = start_daemon(*STREAMED, model=MODEL)
    monkeypatch.delenv("LD_PRELOAD")
    yield daemon, disk
    disk.say("")


def complete(daemon, n=8):
    return daemon.post("/v1/completions", {"prompt": PROMPT, "max_tokens": n, "temperature": 0, "ignore_eos": True,
                                           "return_token_ids": True})


def wait_ready(daemon, wanted: int, seconds=20.0) -> bytes:
    deadline = time.monotonic() + seconds
    while True:
        status, _, text = daemon.request("GET", "/ready")
        if status == wanted:
            return text
        assert time.monotonic() < deadline, f"/ready stayed at {status}: {text}"
        time.sleep(0.02)


def begin_and_hang(daemon, disk):
    """Lets reads hang and starts a request; returns its thread and the list that gets the reply."""
    replies = []
    disk.say("hang")
    thread = threading.Thread(target=lambda: replies.append(attempt(daemon)))
    thread.start()
    return thread, replies


def attempt(daemon):
    try:
        return complete(daemon)
    except OSError as lost:  # the daemon ended before it answered
        return 0, str(lost)


def test_reads_that_hang_are_told_and_everything_goes_on_once_they_end(daemon_and_disk):
    daemon, disk = daemon_and_disk
    status, wanted = complete(daemon)
    assert status == 200
    thread, replies = begin_and_hang(daemon, disk)
    began = time.monotonic()
    assert b"scheduler.watchdog" in wait_ready(daemon, 503)
    assert time.monotonic() - began < 5  # the watchdog reports a stall after half a second
    assert daemon.request("GET", "/health")[0] == 200
    assert daemon.request("GET", "/v1/models")[0] == 200
    disk.say("")
    wait_ready(daemon, 200)
    thread.join(30)
    status, reply = replies[0]
    assert status == 200
    assert reply["choices"][0]["text"] == wanted["choices"][0]["text"]
    assert complete(daemon)[1]["choices"] == wanted["choices"]
    assert daemon.metric("twill_executor_restarts_total") == 0


def test_the_third_signal_ends_a_daemon_whose_reads_hang(daemon_and_disk):
    daemon, disk = daemon_and_disk
    thread, _ = begin_and_hang(daemon, disk)
    wait_ready(daemon, 503)
    for _ in range(3):
        daemon.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
    assert daemon.process.wait(5) == 1
    thread.join(30)


@pytest.mark.skipif(not LONG, reason="ten seconds of patience: tools/test --long")
def test_one_signal_ends_a_daemon_whose_reads_hang(daemon_and_disk):
    daemon, disk = daemon_and_disk
    thread, replies = begin_and_hang(daemon, disk)
    wait_ready(daemon, 503)
    daemon.process.terminate()
    began = time.monotonic()
    assert daemon.process.wait(20) == 1  # after drain_timeout the daemon waits ten seconds more
    assert time.monotonic() - began < 15
    assert "does not end" in daemon.text_of_log()
    thread.join(30)
    assert replies[0][0] != 200


def test_one_failing_read_in_a_hundred_is_noticed_by_nobody(daemon_and_disk):
    daemon, disk = daemon_and_disk
    _, wanted = complete(daemon, 64)
    disk.say("fail 100")
    for _ in range(3):
        status, reply = complete(daemon, 64)
        assert status == 200
        assert reply["choices"] == wanted["choices"]
    assert daemon.metric("twill_executor_restarts_total") == 0


def test_a_disk_that_fails_for_a_while_is_used_again_once_it_has_healed(daemon_and_disk):
    daemon, disk = daemon_and_disk
    _, wanted = complete(daemon)
    disk.say("fail 1")
    status, reply = complete(daemon)
    assert status >= 500 or status == 200, reply  # a request is tried again after the restart if nothing of it was streamed
    disk.say("")
    deadline = time.monotonic() + 30
    while True:
        status, reply = complete(daemon)
        if status == 200:
            break
        assert time.monotonic() < deadline, reply
        time.sleep(0.1)
    assert reply["choices"] == wanted["choices"]
    assert daemon.metric("twill_executor_restarts_total") > 0
    assert daemon.process.poll() is None
