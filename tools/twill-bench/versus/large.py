#!/usr/bin/env python3
"""Decoding one sequence of a large model, by turns with llama.cpp's llama-bench: one Markdown line.

    large.py MODEL GGUF [ROUNDS]   # MODEL: what twill serves, GGUF: the same shape as llama.cpp likes it

TWILL_BIN and LLAMA_BENCH say where the programs are. Figures are tokens per second: medians (least to
most) and the median of the rounds' ratios.
"""
import csv
import os
import re
import statistics
import subprocess
import sys

THREADS = str(len(os.sched_getaffinity(0)))


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def twill(model):
    text = output(os.path.join(os.environ.get("TWILL_BIN", "build/release/bin"), "twill-bench"), "engine", "--model",
                  model, "--at-once", "1", "--input-len", "16", "--output-len", "33", "--runs", "2")
    return max(float(rate) for rate in re.findall(r"decode\s+([\d.]+) tokens/s", text))


def llama(model):
    text = output(os.environ.get("LLAMA_BENCH", "llama-bench"), "-m", model, "-t", THREADS, "-p", "0", "-n", "32", "-r",
                  "2", "-o", "csv")
    return float(list(csv.DictReader(text.splitlines()))[-1]["avg_ts"])


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    model, gguf = sys.argv[1:3]
    ours, theirs = [], []
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 5):
        ours.append(twill(model))
        theirs.append(llama(gguf))
    ratios = [a / b for a, b in zip(ours, theirs)]
    print(f"| {os.path.basename(model)}; {os.path.basename(gguf)} | {spread(ours)} | {spread(theirs)} | {spread(ratios)} |")


if __name__ == "__main__":
    main()
