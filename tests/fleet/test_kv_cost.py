"""What publishing KV events costs, on an engine that does no work. The test takes minutes and needs a quiet machine."""

import json
import os
import statistics
import subprocess
import threading
import time

import pytest
import zmq
from workers import clients

pytestmark = pytest.mark.skipif("TWILL_LONG" not in os.environ, reason="a measurement: --long")
ROUNDS = 9


def requests_per_second(worker, folder) -> float:
    result = folder / "result.json"
    subprocess.run([clients.BIN / "twill-bench", "serve", "--base-url", worker.url, "--dataset-name", "random",
                    "--random-input-len", "64", "--random-output-len", "256", "--num-prompts", "2000", "--max-concurrency", "32",
                    "--seed", str(time.monotonic_ns() % 1_000_000), "--save-result", "--result-filename", result],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    return json.loads(result.read_text())["request_throughput"]


class Drain:
    """A subscriber that reads events and discards them."""

    def __init__(self, endpoint: str):
        self.context, self.bytes, self.ends = zmq.Context(), 0, False
        self.socket = self.context.socket(zmq.SUB)
        self.socket.setsockopt_string(zmq.SUBSCRIBE, "")
        self.socket.connect(endpoint)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ends:
            if self.socket.poll(100):
                self.bytes += len(self.socket.recv_multipart()[2])

    def close(self):
        self.ends = True
        self.thread.join()
        self.context.destroy(0)


def test_telling_costs_little(fleet, tmp_path):
    off = fleet.worker("kv.memory=64MiB", model="dummy:null")
    on = fleet.worker("kv.memory=64MiB", "kv.events=EVENTS", model="dummy:null")
    reader = Drain(on.events)
    ratios = []
    for number in range(ROUNDS + 1):
        order = (off, on) if number % 2 else (on, off)
        rate = {one: requests_per_second(one, tmp_path) for one in order}
        if number:  # the first round warms up
            ratios.append(rate[on] / rate[off])
    reader.close()
    print(f"requests/s with events / without, {ROUNDS} by turns: median {statistics.median(ratios):.3f}, "
          f"{min(ratios):.3f} to {max(ratios):.3f}; {reader.bytes} bytes of events")
    assert reader.bytes > 1_000_000
    assert statistics.median(ratios) >= 0.9  # the goal is 0.98; see net/kv_events/README.md


def test_a_subscriber_that_stands_still_costs_little_memory_and_no_pause(fleet, tmp_path):
    worker = fleet.worker("kv.memory=64MiB", "kv.events=EVENTS", model="dummy:null")
    requests_per_second(worker, tmp_path)
    before = worker.daemon.memory_bytes()
    context = zmq.Context()
    stopped = context.socket(zmq.SUB)
    stopped.setsockopt(zmq.RCVHWM, 1)
    stopped.setsockopt_string(zmq.SUBSCRIBE, "")
    stopped.connect(worker.events)
    most, slowest, cut = 0, 0.0, False
    deadline = time.monotonic() + 120
    try:
        while time.monotonic() < deadline and not cut:
            begun = time.monotonic()
            assert worker.daemon.post("/v1/completions", {"prompt": [1] * 5, "max_tokens": 1})[0] == 200
            slowest = max(slowest, time.monotonic() - begun)
            requests_per_second(worker, tmp_path)
            most = max(most, worker.daemon.memory_bytes() - before)
            cut = "a subscriber does not read" in worker.daemon.text_of_log()
    finally:
        context.destroy(0)
    print(f"{most / 2**20:.1f} MiB more, slowest request {slowest * 1000:.1f} ms, cut off: {cut}")
    assert most <= 64 * 2**20
    assert slowest < 1
