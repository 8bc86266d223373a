"""What each router adds to a request and to an event of a stream, on an engine that does no work. The figures need a quiet machine."""

import http.client
import json
import os
import statistics
import time
from urllib.parse import urlsplit

import pytest
from routers import ROUTERS
from workers import Worker

pytestmark = pytest.mark.skipif("TWILL_LONG" not in os.environ, reason="a measurement: --long")
ROUNDS, REQUESTS, TOKENS = 7, 100, 2000


class Direct:
    name, headers = "direct", {}

    def __init__(self, workers):
        self.url, self.model = workers[0].url, workers[0].daemon.model()

    def stop(self):
        pass


class Asked:
    """A kept connection, on which a router gets one request after another."""

    def __init__(self, at):
        self.connection = http.client.HTTPConnection(urlsplit(at.url).netloc, timeout=60)
        self.headers, self.model = {"Content-Type": "application/json", **at.headers}, at.model

    def post(self, **fields) -> bytes:
        body = json.dumps({"model": self.model, "prompt": "Once", "ignore_eos": True, **fields})
        self.connection.request("POST", "/v1/completions", body, self.headers)
        reply = self.connection.getresponse()
        text = reply.read()
        assert reply.status == 200, text
        return text

    def microseconds_of_a_token(self) -> float:
        took = []
        for _ in range(REQUESTS):
            begun = time.perf_counter()
            self.post(max_tokens=1)
            took.append(time.perf_counter() - begun)
        return statistics.median(took) * 1e6

    def microseconds_of_an_event(self) -> float:
        begun = time.perf_counter()
        text = self.post(max_tokens=TOKENS, stream=True)
        took = time.perf_counter() - begun
        events = text.count(b"data: {")
        assert events >= TOKENS // 2 and text.endswith(b"data: [DONE]\n\n"), (events, text[-300:])
        return took / events * 1e6


def test_what_routers_cost():
    made = []
    try:
        workers = []
        for _ in range(2):
            workers.append(Worker("kv.memory=64MiB", model="dummy:null"))
            made.append(workers[-1])
        fronts = [Direct(workers)]
        for one in ROUTERS:
            made.append(one(workers))
            fronts.append(made[-1])
        requests, events = ({at.name: [] for at in fronts} for _ in range(2))
        for number in range(ROUNDS + 1):
            for at in fronts if number % 2 else reversed(fronts):
                asked = Asked(at)
                found = asked.microseconds_of_a_token(), asked.microseconds_of_an_event()
                asked.connection.close()
                if number:  # the first round warms up
                    requests[at.name].append(found[0])
                    events[at.name].append(found[1])
    finally:
        for one in reversed(made):
            one.stop()
    print(f"medians of {ROUNDS} rounds (least to most), in us: p50 of {REQUESTS} completions of one token; an event of {TOKENS}")
    for name in requests:
        row = [f"{statistics.median(x):8.0f} ({min(x):.0f} to {max(x):.0f})" for x in (requests[name], events[name])]
        print(f"{name:15}" + "".join(f"{cell:>26}" for cell in row))
    # This is a measurement, not a gate: the test fails only at a cost so large that something else must be wrong.
    assert statistics.median(requests["vllm-router"]) < statistics.median(requests["direct"]) + 20_000
