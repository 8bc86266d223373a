"""Dynamo's own relay reads KV events, and its router knows from them which blocks a daemon has in which tier. Only with
--long."""

import json
import os
import subprocess
import sys
import time

import pytest
from routers import Dynamo
from workers import HERE

pytestmark = pytest.mark.skipif("TWILL_LONG" not in os.environ, reason="Dynamo is installed with --long")
SMALL = {"max_tokens": 1, "temperature": 0}


class Relay:
    def __init__(self, events: str, folder):
        environment = {**os.environ, **Dynamo.surroundings(folder), "PYTHONPATH": os.environ["TWILL_FLEET_DYNAMO"]}
        self.log = folder / "log"
        log = self.log.open("w")
        self.process = subprocess.Popen([sys.executable, HERE / "dynamo/relay.py", events], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, stderr=log, env=environment, cwd=folder)
        log.close()
        self.line("relaying")

    def line(self, begins: str) -> str:
        """The next line of the output that begins with `begins`. Others are left out, since Dynamo's runtime writes there, too."""
        while not (line := self.process.stdout.readline()).startswith(begins):
            assert line, "the relay ended:\n" + self.log.read_text()[-3000:]
        return line

    def knows(self, ids: list) -> dict:
        self.process.stdin.write(json.dumps(ids) + "\n")
        self.process.stdin.flush()
        [worker] = json.loads(self.line("["))
        return {where: worker[f"{where}_blocks"] for where in ("device", "host_pinned", "disk")}

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def relays(tmp_path):
    made = []

    def begin(worker):
        made.append(Relay(worker.events, tmp_path))
        return made[-1]

    yield begin
    for one in made:
        one.stop()


def prompt(number: int) -> list:
    return [(number * 31 + place) % 900 + 50 for place in range(100)]


def ask(worker, ids):
    assert worker.daemon.post("/v1/completions", {"prompt": ids, **SMALL})[0] == 200


def longest(ids: list, known: set) -> int:
    """The number of blocks of the longest prefix of `ids` that is in `known`."""
    return max((end // 16 for end in range(16, len(ids) + 1, 16) if tuple(ids[:end]) in known), default=0)


@pytest.mark.parametrize(("form", "tier"), [("map", ()), ("array", ("kv.host_memory=64MiB",))], ids=["map", "array, host memory"])
def test_it_knows_what_is_where(fleet, relays, form, tier):
    """The relay agrees with vLLM's structs, which read the same events, after evictions and on blocks in host memory."""
    worker = fleet.worker("kv.events=EVENTS", f"kv.events_format={form}", "kv.memory=8MiB", "scheduler.max_context_tokens=256", *tier)
    relay, reader = relays(worker), fleet.subscriber(worker.events, "", form == "array")
    time.sleep(1)
    for number in range(100):
        ask(worker, prompt(number))
    reader.take(1)
    seen = set()
    for number in range(100):
        known = relay.knows(prompt(number))
        device = longest(prompt(number), reader.prefixes("GPU"))
        host = max(device, longest(prompt(number), reader.prefixes("CPU")))
        assert (known["device"], known["host_pinned"]) == (device, host), number
        seen.add((device, host))
    assert (6, 6) in seen and (0, 0) in seen and ((0, 6) in seen) == bool(tier), seen
