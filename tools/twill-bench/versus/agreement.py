#!/usr/bin/env python3
"""Compares what twill-bench and other load generators measure on the same server. Prints one Markdown table.

    agreement.py --tokenizer FOLDER [--vllm PROGRAM] [--aiperf PROGRAM] [--guidellm PROGRAM] [--rounds 3]

All generators send the same closed-loop load, in turn, to one server: twill-bench's null server with pauses between
tokens, or any server that answers /v1/completions (--base-url, --model). FOLDER holds a Hugging Face tokenizer, with
which the other generators make and count prompts. A cell shows the median over the rounds and the difference from
twill-bench.

The generators have different names for the same figure. "Per output token" here is (request latency - time to the first
token) / (tokens - 1) of a request. It is called TPOT by vLLM, inter_token_latency by aiperf and inter_token_latency_ms
by guidellm (whose time_per_output_token_ms is the whole latency divided by all tokens).
"""
import contextlib
import json
import os
import pathlib
import statistics
import sys
import tempfile

from harness import heading, null_server, output, parser, program, row

ROWS = ("output tokens/s", "requests/s", "first token p50 ms", "first token p99 ms", "per output token p50 ms",
        "per output token p99 ms", "request p50 ms", "request p99 ms")


def bench_figures(file):
    """Reads the figures from a result file of twill-bench or vLLM, which have the same keys."""
    r = json.loads(file.read_text())
    return (r["output_throughput"], r["request_throughput"], r["p50_ttft_ms"], r["p99_ttft_ms"], r["p50_tpot_ms"],
            r["p99_tpot_ms"], r["p50_e2el_ms"], r["p99_e2el_ms"])


BENCH_FLAGS = ["--percentile-metrics", "ttft,tpot,e2el", "--metric-percentiles", "50,99", "--ignore-eos", "--save-result",
               "--result-filename", "result.json"]


def twill(load, path, folder):
    output([path, "--backend", "openai", "--base-url", load.base_url, "--model", load.model, "--num-warmups", load.warmups,
         "--random-input-len", load.input_len, "--random-output-len", load.output_len, "--num-prompts", load.requests,
         "--max-concurrency", load.concurrency, "--no-progress", *BENCH_FLAGS], cwd=folder)
    return bench_figures(folder / "result.json")


def vllm(load, path, folder):
    output([path, "bench", "serve", "--backend", "openai", "--base-url", load.base_url, "--model", load.model, "--tokenizer",
         load.tokenizer, "--dataset-name", "random", "--num-warmups", load.warmups, "--random-input-len", load.input_len,
         "--random-output-len", load.output_len, "--num-prompts", load.requests, "--max-concurrency", load.concurrency,
         "--disable-tqdm", *BENCH_FLAGS], cwd=folder)
    return bench_figures(folder / "result.json")


def aiperf(load, path, folder):
    # aiperf takes a relative path as a local tokenizer and an absolute path as a name on a hub.
    os.symlink(load.tokenizer, folder / "tokenizer")
    output([path, "profile", "-m", load.model, "--endpoint-type", "completions", "--streaming", "--url", load.base_url,
         "--tokenizer", "./tokenizer", "--synthetic-input-tokens-mean", load.input_len, "--synthetic-input-tokens-stddev", 0,
         "--output-tokens-mean", load.output_len, "--output-tokens-stddev", 0, "--extra-inputs", "ignore_eos:true",
         "--concurrency", load.concurrency, "--request-count", load.requests, "--warmup-request-count", load.warmups, "--ui",
         "none", "--artifact-dir", folder], cwd=folder)
    r = json.loads((folder / "profile_export_aiperf.json").read_text())

    def pair(key):
        return r[key]["p50"], r[key]["p99"]

    return (r["output_token_throughput"]["avg"], r["request_throughput"]["avg"], *pair("time_to_first_token"),
            *pair("inter_token_latency"), *pair("request_latency"))


def guidellm(load, path, folder):
    # guidellm's first requests count as load, because it can skip a number of seconds or a share of requests, but not a
    # number of requests.
    output([path, "run", "--backend", f"kind=openai_http,target={load.base_url},request_format=/v1/completions", "--profile",
         f"kind=concurrent,streams={load.concurrency}", "--constraint", f"kind=max_requests,count={load.requests}",
         "--tokenizer", f"kind=huggingface_auto,model={load.tokenizer}", "--data",
         f"kind=synthetic_text,prompt_tokens={load.input_len},output_tokens={load.output_len}", "--output",
         "kind=json,path=result.json", "--disable-progress"], cwd=folder)
    m = json.loads((folder / "result.json").read_text())["benchmarks"][0]["metrics"]

    def pair(key, scale=1):
        percentiles = m[key]["successful"]["percentiles"]
        return percentiles["p50"] * scale, percentiles["p99"] * scale

    return (m["output_tokens_per_second"]["successful"]["mean"], m["requests_per_second"]["successful"]["mean"],
            *pair("time_to_first_token_ms"), *pair("inter_token_latency_ms"), *pair("request_latency", 1000))


def table(figures):
    heading("", *figures)
    medians = {name: [statistics.median(column) for column in zip(*rounds)] for name, rounds in figures.items()}
    for i, name_of_row in enumerate(ROWS):
        cells = [f"{m[i]:.2f}" if name == "twill-bench" else f"{m[i]:.2f} ({m[i] / medians['twill-bench'][i] - 1:+.1%})"
                 for name, m in medians.items()]
        row(name_of_row, *cells)


def main():
    flags = parser(__doc__)
    flags.add_argument("--tokenizer", type=pathlib.Path, required=True)
    for name in ("vllm", "aiperf", "guidellm"):
        flags.add_argument("--" + name, metavar="PROGRAM")
    flags.add_argument("--base-url", help="a server that runs; without it, the null server")
    flags.add_argument("--model", default="null")
    for name, value in (("rounds", 3), ("requests", 160), ("warmups", 16), ("concurrency", 16), ("input-len", 16),
                        ("output-len", 64), ("first-token-ms", 200), ("token-interval-ms", 20)):
        flags.add_argument("--" + name, type=int, default=value)
    load = flags.parse_args()
    load.tokenizer = load.tokenizer.resolve()
    bench = program("twill-bench")
    generators = {"twill-bench": (twill, bench), "vllm bench serve": (vllm, load.vllm), "aiperf": (aiperf, load.aiperf),
                  "guidellm": (guidellm, load.guidellm)}
    figures = {name: [] for name, (_, path) in generators.items() if path}
    with contextlib.ExitStack() as stack:
        if not load.base_url:
            load.base_url = stack.enter_context(null_server(
                bench, "--first-token-ms", load.first_token_ms, "--token-interval-ms", load.token_interval_ms)).url
        for _ in range(load.rounds):
            for name in figures:
                generate, path = generators[name]
                with tempfile.TemporaryDirectory() as folder:
                    figures[name].append(generate(load, path, pathlib.Path(folder)))
                print(name, ", ".join(f"{x:.2f}" for x in figures[name][-1]), file=sys.stderr, flush=True)
    table(figures)


if __name__ == "__main__":
    main()
