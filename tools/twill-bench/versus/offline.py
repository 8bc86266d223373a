#!/usr/bin/env python3
"""Offline engines on the loads that `twill-bench engine` times: one line of tokens per second.

    offline.py openvino FOLDER     # openvino-genai, continuous batching
    offline.py onnxruntime FOLDER  # onnxruntime-genai, static batches
    offline.py twill FILE [TYPE]   # twill-bench engine; TWILL_BIN says where it is; TYPE: --compute

Run the three by turns and compare medians. Prompts are random tokens; every output has its full
length. Prefill is 512 tokens, best of three; decode 128 tokens after 128, best of two; then 8 and
32 at once, 128 in and 128 out, output tokens over all, one run.
"""
import os
import random
import re
import subprocess
import sys
import time

THREADS = len(os.sched_getaffinity(0))


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
    prefill = min(run(1, 512, 1) for _ in range(3))
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
    prefill = min(run(1, 512, 1)[0] for _ in range(3))
    first, whole = min((run(1, 128, 129) for _ in range(2)), key=lambda t: t[1] - t[0])
    return (512 / prefill, 128 / (whole - first),
            8 * 128 / run(8, 128, 128)[1], 32 * 128 / run(32, 128, 128)[1])


def twill(model, compute="auto"):
    program = os.path.join(os.environ.get("TWILL_BIN", "build/release/bin"), "twill-bench")

    def run(at_once, n_in, n_out, runs, column):
        out = subprocess.run(
            [program, "engine", "--model", model, "--compute", compute, "--at-once", str(at_once),
             "--input-len", str(n_in), "--output-len", str(n_out), "--runs", str(runs)],
            check=True, capture_output=True, text=True).stdout
        lines = [re.findall(r"[0-9.]+", line) for line in out.splitlines()
                 if line.startswith("prefill")]
        return max(float(line[column]) for line in lines)

    return (run(1, 512, 1, 3, 0), run(1, 128, 129, 2, 1), run(8, 128, 128, 1, 2),
            run(32, 128, 128, 1, 2))


def main():
    engines = {"openvino": openvino, "onnxruntime": onnxruntime, "twill": twill}
    compute = sys.argv[1:2] == ["twill"] and len(sys.argv) == 4
    if not (len(sys.argv) == 3 or compute) or sys.argv[1] not in engines:
        sys.exit(__doc__)
    figures = engines[sys.argv[1]](*sys.argv[2:])
    print("prefill %.0f  decode %.1f  8 at once %.0f  32 at once %.0f" % figures)


if __name__ == "__main__":
    main()
