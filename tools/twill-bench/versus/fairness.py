#!/usr/bin/env python3
"""What tenants have of one daemon, under the fair policy and first come first served: fairness.py BIN [--seconds 15]

Starts `BIN/twilld` on the default model with two tenants and 16 running sequences at most. First one tenant asks alone, then
beside 220 requests of the other: the times to its first token. Then 60 clients of one and 20 of the other ask without a pause,
with equal weights, and 40 and 40 with weights 3 to 1: the tokens that each tenant got. The client shares the cores.
"""

import argparse
import asyncio
import hashlib
import json
import statistics
import subprocess
import time
import urllib.request

PORT = 18447


class Daemon:
    def __init__(self, folder: str, policy: str, weights: tuple):
        tenants = ", ".join(f'{{name = "{name}", key_sha256 = "{hashlib.sha256(name.encode()).hexdigest()}", weight = {weight}}}'
                            for name, weight in zip(("first", "second"), weights))
        settings = ["log.level=error", "kv.memory=512MiB", "scheduler.max_running=16", "scheduler.max_queued=400",
                    f"scheduler.policy={policy}", f"tenants=[{tenants}]"]
        command = [f"{folder}/twilld", "--listen", f"127.0.0.1:{PORT}"]
        for one in settings:
            command += ["--set", one]
        self.process = subprocess.Popen(command)

    def __enter__(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{PORT}/ready").close()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


async def ask(tenant: str, prompt: list, tokens: int) -> tuple:
    """Seconds to the first token, and when each came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    body = json.dumps({"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "stream": True, "temperature": 0}).encode()
    writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {tenant}\r\n"
                 f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    sent, times, all_bytes = time.monotonic(), [], b""
    while b"data: [DONE]" not in all_bytes:
        data = await reader.read(65536)
        if not data or (not all_bytes and not data.startswith(b"HTTP/1.1 200")):
            raise RuntimeError(f"no stream but {(all_bytes + data)[:200]}")
        all_bytes = all_bytes[-12:] + data
        times += [time.monotonic()] * data.count(b'"text":')
    writer.close()
    return times[0] - sent, times


async def first_tokens(n: int, pause: float, first_id: int) -> list:
    seconds = []
    for i in range(n):
        seconds.append((await ask("second", [first_id + i] * 20, 8))[0])
        await asyncio.sleep(pause)
    return seconds


async def flood(policy: str) -> None:
    alone = await first_tokens(12, 0.15, 100)
    flooding = [asyncio.create_task(ask("first", [500 + i] * 16, 64)) for i in range(220)]
    await asyncio.sleep(1)
    beside = await first_tokens(12 if policy == "fair" else 3, 0.3, 300)
    left = sum(not one.done() for one in flooding)
    for one in flooding:
        one.cancel()
    await asyncio.gather(*flooding, return_exceptions=True)
    print(f"| {policy} | {1e3 * statistics.median(alone):.0f} | {1e3 * statistics.median(beside):.0f} | {1e3 * max(beside):.0f} | {left} |",
          flush=True)


async def shares(policy: str, weights: tuple, clients: tuple, seconds: float) -> None:
    begin = time.monotonic() + 3
    end = begin + seconds
    got = {"first": 0, "second": 0}

    async def client(tenant: str, number: int) -> None:
        turn = 0
        while time.monotonic() < end:
            _, times = await ask(tenant, [700 + 13 * number + turn] * 16, 48)
            turn += 1
            got[tenant] += sum(begin <= at <= end for at in times)

    await asyncio.gather(*(client(tenant, i) for tenant, n in zip(got, clients) for i in range(n)))
    print(f"| {policy} | {weights[0]} to {weights[1]} | {clients[0]} and {clients[1]} | {got['first']} | {got['second']} | "
          f"{got['first'] / max(got['second'], 1):.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder with twilld")
    parser.add_argument("--seconds", type=float, default=15, help="that tokens are counted for")
    arguments = parser.parse_args()
    print("| policy | alone, ms | beside 220, median ms | most ms | of these not served then |\n|---|---|---|---|---|")
    for policy in ("fair", "fcfs"):
        with Daemon(arguments.bin, policy, (1, 1)):
            asyncio.run(flood(policy))
    print("\n| policy | weights | clients | tokens of the first | of the second | ratio |\n|---|---|---|---|---|---|")
    for policy, weights, clients in (("fair", (1, 1), (60, 20)), ("fair", (3, 1), (40, 40)), ("fcfs", (1, 1), (60, 20))):
        with Daemon(arguments.bin, policy, weights):
            asyncio.run(shares(policy, weights, clients, arguments.seconds))


if __name__ == "__main__":
    main()
