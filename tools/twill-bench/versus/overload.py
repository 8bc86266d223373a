#!/usr/bin/env python3
"""Checks a daemon under three times the load that it can serve.

    overload.py BIN [--minutes 5]

Starts `BIN/twilld` with dummy:null, whose steps take a fixed time, so that its capacity is known and the load costs
little.

First the script finds the peak: the requests served per second at 0.8, 1 and 1.2 times the nominal capacity. Then
requests arrive at three times the capacity for some minutes, whatever the replies are. The script prints the served
requests per second beside the peak, how long a refusal took, the values of Retry-After, and the daemon's memory. Last,
many clients start at once and wait as Retry-After says. The script prints how long it took to serve them all beside the
least possible time, how many requests they sent, and the most requests within one second.

The exit status is 1 when fewer requests are served than 0.9 of the peak, when a refusal takes longer than 0.25 s at the
median or has no Retry-After, when memory grows by more than 1 %, or when the clients are not all served within twice
the least possible time.
"""

import asyncio
import collections
import json
import random
import re
import sys
import time

from harness import Server, parser, twilld

RUNNING, QUEUED, TOKENS, STEP_US = 16, 32, 40, 20000
CAPACITY = RUNNING / (TOKENS * STEP_US * 1e-6)  # requests per second


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else float("nan")


class Load:
    def __init__(self, port):
        self.port = port
        self.served = []  # times at which whole replies had arrived
        self.refused = []  # (seconds until the refusal, Retry-After)
        self.other = collections.Counter()
        self.attempts = []

    async def ask(self):
        """Sends one request. Returns its status and Retry-After."""
        began = time.monotonic()
        self.attempts.append(began)
        body = json.dumps({"prompt": "Once upon a time", "max_tokens": TOKENS}).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            reply = await reader.read(-1)
        finally:
            writer.close()
        head, _, rest = reply.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        if status == 200:
            if json.loads(rest)["usage"]["completion_tokens"] != TOKENS:
                self.other["short answers"] += 1
            self.served.append(time.monotonic())
            return status, 0
        found = re.search(rb"(?i)^retry-after: (\d+)", head, re.M)
        if status != 429 or not found:
            self.other[f"status {status}{'' if found else ' without Retry-After'}"] += 1
            return status, 1
        self.refused.append((time.monotonic() - began, int(found.group(1))))
        return status, int(found.group(1))

    async def arrive(self, rate, seconds):
        """Sends requests at random times with this mean rate, whatever the replies are."""
        rng, tasks = random.Random(1), set()
        end = due = time.monotonic()
        end += seconds
        while due < end:
            await asyncio.sleep(max(due - time.monotonic(), 0))
            task = asyncio.create_task(self.ask())
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            due += rng.expovariate(rate)
        in_time = [t for t in self.served if end - seconds / 2 <= t <= end]
        await asyncio.gather(*tasks)
        return len(in_time) / (seconds / 2)


async def patient(load, rng):
    tries = 1
    while True:
        status, wait = await load.ask()
        if status == 200:
            return tries
        tries += 1
        await asyncio.sleep(wait + rng.random() * 0.2)


async def run(daemon: Server, minutes: float) -> list:
    port, failures = daemon.port, []
    peak = 0
    for share in (0.8, 1, 1.2):
        served = await Load(port).arrive(share * CAPACITY, 20)
        print(f"{share:.1f} x capacity: {served:.2f} of {CAPACITY:.1f} requests/s served", flush=True)
        peak = max(peak, served)

    load, memory = Load(port), []

    async def watch():
        while True:
            memory.append(daemon.resident_bytes())
            await asyncio.sleep(1)

    watching = asyncio.create_task(watch())
    seconds = minutes * 60
    served = await load.arrive(3 * CAPACITY, seconds)
    watching.cancel()
    took = [t for t, _ in load.refused]
    said = [r for _, r in load.refused]
    grew = max(memory[-len(memory) // 4:]) / max(memory[len(memory) // 4:len(memory) // 2]) - 1
    print(f"3 x capacity for {minutes:g} min: {served:.2f} requests/s served, {served / peak:.3f} of the peak; "
          f"{len(load.served)} served, {len(load.refused)} refused {dict(load.other)}")
    print(f"refusals: median {quantile(took, 0.5) * 1e3:.1f} ms, 99 % within {quantile(took, 0.99) * 1e3:.1f} ms; "
          f"Retry-After median {quantile(said, 0.5)} s, {min(said)} to {max(said)} s")
    print(f"memory: {memory[0] / 2**20:.1f} MiB at first, {memory[-1] / 2**20:.1f} at last, {grew * 100:+.2f} % over the "
          "second half", flush=True)
    if served < 0.9 * peak:
        failures.append("goodput fell")
    if quantile(took, 0.5) > 0.25 or load.other:
        failures.append("refusals were late, or no refusals")
    if grew > 0.01:
        failures.append("memory grew")

    load, rng = Load(port), random.Random(2)
    n = int(20 * CAPACITY)
    began = time.monotonic()
    tries = await asyncio.gather(*(patient(load, rng) for _ in range(n)))
    took, least = time.monotonic() - began, n / peak
    later = collections.Counter(int(t - began) for t in load.attempts if t - began >= 1)
    busiest = max(later.values(), default=0)
    print(f"{n} clients at once that honour Retry-After: all served in {took:.1f} s, at least {least:.1f} s; "
          f"{sum(tries) / n:.2f} tries each, {max(tries)} at most; after the first second at most {busiest} tries within a "
          f"second, where {peak:.1f} are served")
    if took > 2 * least or load.other:
        failures.append("the queue did not drain")
    return failures


def main():
    flags = parser(__doc__)
    flags.add_argument("bin", help="folder with twilld")
    flags.add_argument("--minutes", type=float, default=5)
    arguments = flags.parse_args()
    # The prefix cache is off, because dummy:null has 65,536 blocks, and the cache's records of them would fill slowly.
    with twilld(arguments.bin, f"scheduler.max_running={RUNNING}", f"scheduler.max_queued={QUEUED}", "log.level=error",
                "kv.prefix_cache=false", "server.max_connections=4000", model=f"dummy:null?step-us={STEP_US}") as daemon:
        failures = asyncio.run(run(daemon, arguments.minutes))
    for failure in failures:
        print(f"overload.py: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
