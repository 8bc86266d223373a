#!/usr/bin/env python3
"""What storing costs: stored.py BIN MODEL [--rounds N]

One twilld with `responses.folder`; 32 chat streams at once of requests with `store: true` and without, by turns, each
first in every other round. Prints output tokens/s of each round, and the median of the rounds' ratios.
"""

import argparse
import json
import pathlib
import re
import statistics
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("bin", type=pathlib.Path, help="folder with twilld and twill-bench")
parser.add_argument("model")
parser.add_argument("--rounds", type=int, default=14)
arguments = parser.parse_args()


def tokens_per_s(url, store):
    command = [arguments.bin / "twill-bench", "serve", "--backend", "openai-chat", "--base-url", url, "--extra-body", json.dumps({"store": store}),
               "--max-concurrency", "32", "--num-prompts", "64", "--random-input-len", "64", "--random-output-len", "150", "--ignore-eos"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(re.search(r"Output token throughput[^\d]*([\d.]+)", told).group(1))


with tempfile.TemporaryDirectory() as folder:
    address = pathlib.Path(folder) / "address"
    daemon = subprocess.Popen([arguments.bin / "twilld", "--model", arguments.model, "--listen", "127.0.0.1:0", "--address-file", address,
                               "--set", f"responses.folder={folder}/responses", "--set", "log.level=warn"])
    try:
        while not (address.exists() and address.read_text().strip()):
            assert daemon.poll() is None, "twilld ended"
            time.sleep(0.05)
        url = f"http://{address.read_text().split()[0]}"
        tokens_per_s(url, True)  # warms up
        ratios = []
        for i in range(arguments.rounds):
            found = {store: tokens_per_s(url, store) for store in ((False, True) if i % 2 == 0 else (True, False))}
            ratios.append(found[True] / found[False])
            print(f"not stored {found[False]:.0f}, stored {found[True]:.0f}: {ratios[-1]:.3f}", flush=True)
        print(f"median of the ratios {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
    finally:
        daemon.terminate()
        daemon.wait()
