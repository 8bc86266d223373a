#!/usr/bin/env python3
"""Measures the CPU time of the load generator itself, on a server that does no work. Prints one Markdown table.

    client_cost.py [--twill-bench PROGRAM] [--vllm PROGRAM --tokenizer FOLDER] [--rounds 5]

The client and `twill-bench null` share this machine; the null server sends one token per write. Each round runs every
client once with few and once with many requests. CPU per token (user and system time of the client) is computed from
the difference of the two runs, so that starting an interpreter does not count. In rows "as fast as it can", a client
that falls behind finds many tokens in one read, which makes each of them cheap. In rows "paced", the server sends a
token every 20 ms on each stream, as real servers do, and each token needs a read of its own. FOLDER holds a Hugging
Face tokenizer, which vLLM's `bench serve` needs.
"""
import json
import os
import pathlib
import resource
import sys
import tempfile

from harness import ROOT, heading, null_server, output, parser, row, spread

TOKENS = 500
PACED_TOKENS = 200


def timed(command, folder):
    """Runs the command. Returns the CPU seconds of the command and its children, and its result file."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = output(command, cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = json.loads((folder / "result.json").read_text())
    if result["completed"] == 0 or result.get("failed", 0) > 0:
        sys.exit(f"requests failed: {printed[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, result


def one_round(command_for, few, many, folder):
    short, few_result = timed(command_for(few), folder)
    long, many_result = timed(command_for(many), folder)
    tokens = many_result["total_output_tokens"] - few_result["total_output_tokens"]
    return 1e6 * (long - short) / tokens, many_result["output_throughput"], many_result["request_throughput"]


def common(url, at_once, output_len, n):
    return ["--base-url", url, "--model", "null", "--random-input-len", 8, "--random-output-len", output_len, "--num-prompts",
            n, "--max-concurrency", at_once, "--num-warmups", 0, "--ignore-eos", "--save-result", "--result-filename",
            "result.json"]


def clients_of(a, fast, paced):
    """For each row of the table: a function that gives the command for n requests, and the two numbers of requests, few
    and many."""
    def twill(url, backend, at_once, output_len):
        return lambda n: [a.twill_bench, "serve", "--backend", backend, "--no-progress",
                          *common(url, at_once, output_len, n)]

    def vllm(url, at_once, output_len):
        return lambda n: [a.vllm, "bench", "serve", "--backend", "openai", "--tokenizer", a.tokenizer, "--dataset-name",
                          "random", "--disable-tqdm", *common(url, at_once, output_len, n)]

    rows = {}
    for name, backend in (("SSE", "openai"), ("WebSocket", "twill-stream")):
        for at_once in (32, 128):
            rows[f"twill-bench, {name}, {at_once} at once, as fast as it can"] = (
                twill(fast, backend, at_once, TOKENS), 200, 2200)
    rows["twill-bench, WebSocket, 64 at once, requests of one token"] = (twill(fast, "twill-stream", 64, 1), 20000, 120000)
    if a.vllm:
        rows["vllm bench serve, SSE, 32 at once, as fast as it can"] = (vllm(fast, 32, TOKENS), 64, 664)
        rows["vllm bench serve, SSE, 128 at once, paced"] = (vllm(paced, 128, PACED_TOKENS), 128, 512)
    for name, backend in (("SSE", "openai"), ("WebSocket", "twill-stream")):
        rows[f"twill-bench, {name}, 128 at once, paced"] = (twill(paced, backend, 128, PACED_TOKENS), 128, 512)
    return rows


def main():
    flags = parser(__doc__)
    flags.add_argument("--twill-bench", default=ROOT / "build/release/bin/twill-bench")
    flags.add_argument("--vllm")
    flags.add_argument("--tokenizer")
    flags.add_argument("--rounds", type=int, default=5)
    a = flags.parse_args()
    if a.vllm and not a.tokenizer:
        flags.error("--vllm needs --tokenizer")
    os.environ.update(HF_HUB_OFFLINE="1")
    rows = {}
    with (tempfile.TemporaryDirectory() as name, null_server(a.twill_bench) as fast,
          null_server(a.twill_bench, "--token-interval-ms", 20) as paced):
        folder = pathlib.Path(name)
        for _ in range(a.rounds):
            for client, (command_for, few, many) in clients_of(a, fast.url, paced.url).items():
                rows.setdefault(client, []).append(one_round(command_for, few, many, folder))
    heading("client", "tokens/s", "requests/s", "client CPU per token, us")
    for client, rounds in rows.items():
        cpu, tokens, requests = zip(*rounds)
        row(client, spread(tokens), spread(requests), spread(cpu, ",.2f"))


if __name__ == "__main__":
    main()
