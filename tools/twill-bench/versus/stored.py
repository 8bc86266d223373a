#!/usr/bin/env python3
"""Measures what storing responses costs.

    stored.py BIN MODEL [--rounds N]

One twilld with `responses.folder` serves 32 chat streams at once, in turn with and without `store: true` in the
requests. Every other round has the two turns in reverse order. Prints the output tokens/s of each round, and the median
of the ratios within the rounds.
"""

import json
import re
import statistics
import tempfile

from harness import in_turn, output, parser, twilld


def tokens_per_s(bin_folder: str, url: str, store: bool) -> float:
    report = output([f"{bin_folder}/twill-bench", "serve", "--backend", "openai-chat", "--base-url", url, "--extra-body",
                     json.dumps({"store": store}), "--max-concurrency", 32, "--num-prompts", 64, "--random-input-len", 64,
                     "--random-output-len", 150, "--ignore-eos"])
    return float(re.search(r"Output token throughput[^\d]*([\d.]+)", report).group(1))


def main() -> None:
    flags = parser(__doc__)
    flags.add_argument("bin", help="folder with twilld and twill-bench")
    flags.add_argument("model")
    flags.add_argument("--rounds", type=int, default=14)
    given = flags.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder, twilld(given.bin, f"responses.folder={folder}/responses",
                                                         model=given.model) as daemon:
        tokens_per_s(given.bin, daemon.url, True)  # warms the daemon up
        for i in range(given.rounds):
            found = {store: tokens_per_s(given.bin, daemon.url, store) for store in in_turn((False, True), i)}
            ratios.append(found[True] / found[False])
            print(f"not stored {found[False]:.0f}, stored {found[True]:.0f}: {ratios[-1]:.3f}", flush=True)
    print(f"median of the ratios {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


if __name__ == "__main__":
    main()
