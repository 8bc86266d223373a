#!/usr/bin/env python3
"""Measures offline engines with the loads of `twill-bench engine`. Prints one line with tokens per second.

    offline.py openvino FOLDER     # openvino-genai, continuous batching
    offline.py onnxruntime FOLDER  # onnxruntime-genai, static batches
    offline.py twill FILE [TYPE]   # twill-bench engine; TWILL_BIN says where it is; TYPE: --compute
    offline.py turns ROUNDS twill:FILE,int8 twill:FILE,w8a8 openvino:FOLDER ...

`turns` runs several engines in turn, in reverse order in every other round, and prints a Markdown table with medians
(least to most) and with twill's ratios to the best other engine of each round. ONLY=prefill in the environment measures
only prefill, in short rounds, because the machine's speed changes less within a short round.

Prompts are random tokens, and every output has its full length. The loads are: prefill of 512 tokens, best of five
runs; decoding of 128 tokens after a prompt of 128, best of two; and then 8 and 32 sequences at once with 128 tokens in
and 128 out, where the figure is output tokens per second of the whole run, one run each.
"""
import os
import random
import re
import sys
import time

from harness import heading, in_turn, output, program, row, spread

THREADS = len(os.sched_getaffinity(0))
LOADS = ("prefill", "decode", "8 at once", "32 at once")
PREFILL_ONLY = os.environ.get("ONLY") == "prefill"


def prompt(n):
    return [random.randrange(1000, 40000) for _ in range(n)]


def openvino(folder):
    import numpy
    import openvino
    import openvino_genai as genai

    scheduler = genai.SchedulerConfig()
    scheduler.max_num_batched_tokens = 4096
    scheduler.max_num_seqs = 64
    scheduler.cache_size = 1
    scheduler.enable_prefix_caching = False
    pipeline = genai.ContinuousBatchingPipeline(
        folder, scheduler, "CPU", {"INFERENCE_NUM_THREADS": THREADS})

    def run(at_once, n_in, n_out):
        config = genai.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = n_out
        config.ignore_eos = True
        config.do_sample = False
        prompts = [openvino.Tensor(numpy.array([prompt(n_in)], dtype=numpy.int64))
                   for _ in range(at_once)]
        begin = time.time()
        pipeline.generate(prompts, [config] * at_once)
        return time.time() - begin

    run(1, 64, 8)
    prefill = min(run(1, 512, 1) for _ in range(5))
    if PREFILL_ONLY:
        return (512 / prefill,)
    first = min(run(1, 128, 1) for _ in range(2))
    whole = min(run(1, 128, 129) for _ in range(2))
    return (512 / prefill, 128 / (whole - first),
            8 * 128 / run(8, 128, 128), 32 * 128 / run(32, 128, 128))


def onnxruntime(folder):
    import numpy
    import onnxruntime_genai as genai

    model = genai.Model(folder)

    def run(at_once, n_in, n_out):
        params = genai.GeneratorParams(model)
        params.set_search_options(max_length=n_in + n_out, min_length=n_in + n_out,
                                  batch_size=at_once, do_sample=False)
        generator = genai.Generator(model, params)
        prompts = numpy.array([prompt(n_in) for _ in range(at_once)], dtype=numpy.int32)
        begin = time.time()
        generator.append_tokens(prompts)
        first = 0
        for i in range(n_out):
            generator.generate_next_token()
            if i == 0:
                first = time.time() - begin
        return first, time.time() - begin

    run(1, 64, 8)
    prefill = min(run(1, 512, 1)[0] for _ in range(5))
    if PREFILL_ONLY:
        return (512 / prefill,)
    first, whole = min((run(1, 128, 129) for _ in range(2)), key=lambda t: t[1] - t[0])
    return (512 / prefill, 128 / (whole - first),
            8 * 128 / run(8, 128, 128)[1], 32 * 128 / run(32, 128, 128)[1])


def twill(model, compute="auto"):
    def run(at_once, n_in, n_out, runs, column):
        out = output([program("twill-bench"), "engine", "--model", model, "--compute", compute, "--at-once", at_once,
                      "--input-len", n_in, "--output-len", n_out, "--runs", runs])
        lines = [re.findall(r"[0-9.]+", line) for line in out.splitlines()
                 if line.startswith("prefill")]
        return max(float(line[column]) for line in lines)

    prefill = run(1, 512, 1, 5, 0)
    if PREFILL_ONLY:
        return (prefill,)
    return prefill, run(1, 128, 129, 2, 1), run(8, 128, 128, 1, 2), run(32, 128, 128, 1, 2)


def turns(n_rounds, *contestants):
    """Runs each engine in a process of its own, so that no engine keeps memory or threads while another one runs."""
    rounds = []
    for i in range(int(n_rounds)):
        figures = {}
        for name in in_turn(contestants, i):
            engine, model = name.split(":", 1)
            words = model.split(",") if engine == "twill" else [model]
            line = output([sys.executable, __file__, engine, *words]).splitlines()[-1]
            figures[name] = [float(re.search(rf"(?:^|  ){load} ([\d.]+)", line)[1])
                             for load in LOADS[:1 if PREFILL_ONLY else None]]
        rounds.append(figures)
        print(i + 1, figures, file=sys.stderr, flush=True)
    loads = range(len(rounds[0][contestants[0]]))
    heading("engine", *(LOADS[c] for c in loads))
    for name in contestants:
        row(name, *(spread([r[name][c] for r in rounds], ".0f") for c in loads))
    peers = [name for name in contestants if not name.startswith("twill:")]
    for name in contestants if peers else ():
        if name not in peers:
            ratios = ([r[name][c] / max(r[peer][c] for peer in peers) for r in rounds] for c in loads)
            row(f"{name} over the best peer", *(spread(list(r), ".2f") for r in ratios))


def main():
    engines = {"openvino": openvino, "onnxruntime": onnxruntime, "twill": twill}
    if sys.argv[1:2] == ["turns"] and len(sys.argv) > 3:
        return turns(*sys.argv[2:])
    compute = sys.argv[1:2] == ["twill"] and len(sys.argv) == 4
    if not (len(sys.argv) == 3 or compute) or sys.argv[1] not in engines:
        sys.exit(__doc__)
    figures = engines[sys.argv[1]](*sys.argv[2:])
    print("  ".join(f"{load} {figure:.1f}" for load, figure in zip(LOADS, figures)))


if __name__ == "__main__":
    main()
