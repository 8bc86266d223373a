#!/usr/bin/env python3
"""What open dashboards cost the daemon. run with the packages of tests/clients: dashboard_cost.py --bin DIR [--dashboards 8]

Reads the processor time of a daemon that computes nothing (dummy:null), at rest and under a load of twill-bench, with and without
dashboards, in turns. The dashboards are sockets that take every frame and look at nothing, as if browsers elsewhere showed them.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def dashboards(daemon, count):
    from websockets.sync.client import connect
    sockets = [connect(f"ws://127.0.0.1:{daemon.admin_port}/admin/stream", subprotocols=["realtime", "openai-insecure-api-key.boss-key"],
                       max_size=None, proxy=None) for _ in range(count)]
    taken = [0]

    def read(one):
        with contextlib.suppress(Exception):
            for frame in one:
                taken[0] += len(frame)

    threads = [threading.Thread(target=read, args=(one,)) for one in sockets]
    for one in threads:
        one.start()
    yield taken
    for one in sockets:
        one.close()
    for one in threads:
        one.join()


def load(daemon, binaries, requests):
    """Output tokens per second, and processor seconds for a million of them."""
    before = processor_seconds(daemon.process.pid)
    result = pathlib.Path(daemon.folder.name) / "result.json"
    subprocess.run([binaries / "twill-bench", "serve", "--backend", "openai", "--base-url", daemon.url, "--num-prompts", str(requests),
                    "--random-input-len", "16", "--random-output-len", "128", "--max-concurrency", "64", "--ignore-eos", "--save-result",
                    "--result-filename", result, "--header", "Authorization=Bearer guest-key"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    told = json.loads(result.read_text())
    tokens = told["total_output_tokens"]
    return told["output_throughput"], 1e6 * (processor_seconds(daemon.process.pid) - before) / tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--dashboards", type=int, default=8)
    parser.add_argument("--rest", type=float, default=20, help="seconds at rest")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    os.environ["TWILL_BIN"] = str(arguments.bin.resolve())
    from dashboard_test import Watched
    daemon = Watched()
    try:
        for count in (0, arguments.dashboards):
            with dashboards(daemon, count) as taken:
                time.sleep(2)
                before = processor_seconds(daemon.process.pid), taken[0]
                time.sleep(arguments.rest)
                used = processor_seconds(daemon.process.pid) - before[0]
                print(f"at rest, {count} dashboards: {100 * used / arguments.rest:.3f} % of a core, {(taken[0] - before[1]) / arguments.rest:.0f} bytes/s", flush=True)
        load(daemon, arguments.bin, arguments.requests)
        for _ in range(arguments.turns):
            for count in (0, arguments.dashboards):
                with dashboards(daemon, count):
                    rate, cost = load(daemon, arguments.bin, arguments.requests)
                print(f"{count} dashboards: {rate:.0f} tokens/s, {cost:.2f} s of processor time for a million tokens", flush=True)
    finally:
        daemon.stop()


if __name__ == "__main__":
    main()
