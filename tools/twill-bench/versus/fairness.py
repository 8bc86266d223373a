#!/usr/bin/env python3
"""Measures what each of two tenants gets from one daemon, with the fair policy and with first come, first served.

    fairness.py BIN [--seconds 15]

Starts `BIN/twilld` on the default model with two tenants and at most 16 running sequences. The first measurement is one
tenant's time to the first token: alone, and while 220 requests of the other tenant are running or waiting. The second
is the number of tokens that each tenant gets while all clients send requests without a pause: with equal weights, 60
clients of one tenant and 20 of the other; with weights 3 to 1, 40 clients each. The clients share the cores with the
daemon.
"""

import asyncio
import hashlib
import json
import statistics
import time

from harness import Server, heading, parser, row, twilld


def daemon(folder: str, policy: str, weights: tuple) -> Server:
    tenants = ", ".join(f'{{name = "{name}", key_sha256 = "{hashlib.sha256(name.encode()).hexdigest()}", weight = {weight}}}'
                        for name, weight in zip(("first", "second"), weights))
    return twilld(folder, "log.level=error", "kv.memory=512MiB", "scheduler.max_running=16", "scheduler.max_queued=400",
                  f"scheduler.policy={policy}", f"tenants=[{tenants}]")


async def ask(port: int, tenant: str, prompt: list, tokens: int) -> tuple:
    """Sends one request. Returns the seconds to its first token, and the times at which its tokens arrived."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
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


async def first_tokens(port: int, n: int, pause: float, first_id: int) -> list:
    seconds = []
    for i in range(n):
        seconds.append((await ask(port, "second", [first_id + i] * 20, 8))[0])
        await asyncio.sleep(pause)
    return seconds


async def flood(port: int, policy: str) -> None:
    alone = await first_tokens(port, 12, 0.15, 100)
    flooding = [asyncio.create_task(ask(port, "first", [500 + i] * 16, 64)) for i in range(220)]
    await asyncio.sleep(1)
    beside = await first_tokens(port, 12 if policy == "fair" else 3, 0.3, 300)
    left = sum(not one.done() for one in flooding)
    for one in flooding:
        one.cancel()
    await asyncio.gather(*flooding, return_exceptions=True)
    row(policy, *(f"{1e3 * seconds:.0f}" for seconds in (statistics.median(alone), statistics.median(beside), max(beside))), left)


async def shares(port: int, policy: str, weights: tuple, clients: tuple, seconds: float) -> None:
    begin = time.monotonic() + 3
    end = begin + seconds
    got = {"first": 0, "second": 0}

    async def client(tenant: str, number: int) -> None:
        turn = 0
        while time.monotonic() < end:
            _, times = await ask(port, tenant, [700 + 13 * number + turn] * 16, 48)
            turn += 1
            got[tenant] += sum(begin <= at <= end for at in times)

    await asyncio.gather(*(client(tenant, i) for tenant, n in zip(got, clients) for i in range(n)))
    row(policy, f"{weights[0]} to {weights[1]}", f"{clients[0]} and {clients[1]}", got["first"], got["second"],
        f"{got['first'] / max(got['second'], 1):.2f}")


def main() -> None:
    flags = parser(__doc__)
    flags.add_argument("bin", help="folder with twilld")
    flags.add_argument("--seconds", type=float, default=15, help="that tokens are counted for")
    arguments = flags.parse_args()
    heading("policy", "alone, ms", "beside 220, median ms", "most ms", "of these not served then")
    for policy in ("fair", "fcfs"):
        with daemon(arguments.bin, policy, (1, 1)) as server:
            asyncio.run(flood(server.port, policy))
    print()
    heading("policy", "weights", "clients", "tokens of the first", "of the second", "ratio")
    for policy, weights, clients in (("fair", (1, 1), (60, 20)), ("fair", (3, 1), (40, 40)), ("fcfs", (1, 1), (60, 20))):
        with daemon(arguments.bin, policy, weights) as server:
            asyncio.run(shares(server.port, policy, weights, clients, arguments.seconds))


if __name__ == "__main__":
    main()
