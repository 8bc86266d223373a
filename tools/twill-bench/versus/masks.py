#!/usr/bin/env python3
"""Measures what the token masks of structured output cost.

    masks.py BIN MODEL [--streams 32] [--tokens 128] [--rounds 5]

Starts `BIN/twilld` and has it write the same number of tokens for the same number of streams, in turn without a format
and constrained to a JSON schema. Prints, for each round and as medians, the daemon's processor time per token and the
tokens per second, each with the constrained turn as a share of the unconstrained one. Processor time is the steadier of
the two figures on a machine that others use.
"""

import concurrent.futures
import json
import os
import statistics
import time

from harness import Server, in_turn, parser, twilld

SCHEMA = {
    "type": "array", "minItems": 60,
    "items": {
        "type": "object", "additionalProperties": False, "required": ["name", "age", "tags"],
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 1},
        },
    },
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "people", "strict": True, "schema": SCHEMA}}


def processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(daemon: Server, seed: int, tokens: int, masked: bool) -> int:
    body = {"messages": [{"role": "user", "content": f"Tell me about {seed} people and what they like."}],
            "max_tokens": tokens, "temperature": 1, "seed": seed, "ignore_eos": True}
    if masked:
        body["response_format"] = FORMAT
    status, text = daemon.call("POST", "/v1/chat/completions", body)
    if status != 200:
        raise RuntimeError(f"the daemon answered {status}: {text}")
    return json.loads(text)["usage"]["completion_tokens"]


def turn(daemon: Server, streams: int, tokens: int, masked: bool) -> tuple[float, float]:
    """Runs one turn. Returns the processor seconds per token, and the tokens per second."""
    cpu, clock = processor_seconds(daemon.pid), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(streams) as pool:
        written = sum(pool.map(lambda seed: ask(daemon, seed, tokens, masked), range(streams)))
    if written != streams * tokens:
        raise RuntimeError(f"{written} tokens were written instead of {streams * tokens}; their turns cannot be compared")
    return (processor_seconds(daemon.pid) - cpu) / written, written / (time.monotonic() - clock)


def main() -> None:
    flags = parser(__doc__)
    flags.add_argument("bin")
    flags.add_argument("model")
    flags.add_argument("--streams", type=int, default=32)
    flags.add_argument("--tokens", type=int, default=128)
    flags.add_argument("--rounds", type=int, default=5)
    given = flags.parse_args()
    with twilld(given.bin, model=given.model) as daemon:
        for masked in (False, True):  # After this, the prompts are in the prefix cache and the grammar is compiled.
            turn(daemon, given.streams, 8, masked)
        cost, pace = [], []
        for number in range(given.rounds):
            first, second = in_turn((False, True), number)
            times = {False: [], True: []}
            for masked in (first, second, second, first):
                times[masked].append(turn(daemon, given.streams, given.tokens, masked))
            cpu, rate = ({masked: sum(one[k] for one in times[masked]) / 2 for masked in times} for k in (0, 1))
            cost.append(cpu[True] / cpu[False])
            pace.append(rate[True] / rate[False])
            print(f"round {number + 1}: processor time {cpu[True] * 1e6:.0f} / {cpu[False] * 1e6:.0f} us a token = "
                  f"{cost[-1]:.3f}, pace {rate[True]:.0f} / {rate[False]:.0f} tokens/s = {pace[-1]:.3f}", flush=True)
        print(f"medians: processor time {statistics.median(cost):.3f}, pace {statistics.median(pace):.3f}")


if __name__ == "__main__":
    main()
