#!/usr/bin/env python3
"""Compares the decode speed of one sequence of a large model with that of llama.cpp's llama-bench, in turn. Prints a
Markdown table.

    large.py MODEL GGUF [ROUNDS [TYPES]]
    # MODEL: the model for twill; GGUF: a model of the same shape for llama.cpp
    # TYPES: values of twill's --compute, separated by commas

TWILL_BIN and LLAMA_BENCH say where the programs are. Both programs warm up before they are timed: llama-bench with a
warm-up run of its own, twill with four runs, because its weights move to huge pages in the first seconds. Figures are
tokens per second. A round's figure is the mean of the repetitions within a run; the table has the median of the rounds
(least to most) and the median of the ratios within the rounds.

How fast weights can be read depends on the machine's other users. Therefore the read rate is measured before, between
and after the runs of a round. For each type, one line of the table is for all rounds, one for the rounds whose read
rates were all in the slower half of the range, and one for those whose read rates were all in the faster half.
"""
import csv
import os
import re
import statistics
import sys

from harness import heading, output, program, row, spread

THREADS = str(len(os.sched_getaffinity(0)))
WARM_UP = 4
TWILL_BENCH = program("twill-bench")


def reads():
    """The read rate of the memory in GB/s."""
    text = output([TWILL_BENCH, "kernels", "--only", "no op", "--seconds", "0.001"])
    return float(re.search(r"read ([\d.]+) GB/s", text)[1])


def twill(model, compute):
    text = output([TWILL_BENCH, "engine", "--model", model, "--compute", compute, "--at-once", "1", "--input-len",
                  "16", "--output-len", "33", "--runs", str(WARM_UP + 2)])
    return statistics.mean(float(rate) for rate in re.findall(r"decode\s+([\d.]+) tokens/s", text)[WARM_UP:])


def llama(model):
    text = output([os.environ.get("LLAMA_BENCH", "llama-bench"), "-m", model, "-t", THREADS, "-p", "0", "-n", "32", "-r",
                   "2", "-o", "csv"])
    return float(list(csv.DictReader(text.splitlines()))[-1]["avg_ts"])


def line(name, rounds, compute):
    if not rounds:
        return
    at = [rate for r in rounds for rate in r["reads"]]
    ours, theirs = [r[compute] for r in rounds], [r["theirs"] for r in rounds]
    ratios = [a / b for a, b in zip(ours, theirs)]
    row(name, compute, len(rounds), f"{min(at):.0f} to {max(at):.0f}", *(spread(each, ".2f") for each in (ours, theirs, ratios)))


def main():
    model, gguf = sys.argv[1:3]
    types = (sys.argv[4] if len(sys.argv) > 4 else "auto").split(",")
    rounds = []
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 5):
        figures, at = {}, [reads()]
        for compute in types:
            figures[compute] = twill(model, compute)
            at.append(reads())
        figures["theirs"] = llama(gguf)
        rounds.append({**figures, "reads": (*at, reads())})
    heading("models", "compute", "rounds", "reads GB/s", "twill", "llama.cpp", "ratio")
    all_reads = [rate for r in rounds for rate in r["reads"]]
    middle = (min(all_reads) + max(all_reads)) / 2
    for compute in types:
        line(f"{os.path.basename(model)}; {os.path.basename(gguf)}", rounds, compute)
        line("slower reads", [r for r in rounds if max(r["reads"]) < middle], compute)
        line("faster reads", [r for r in rounds if min(r["reads"]) >= middle], compute)


if __name__ == "__main__":
    main()
