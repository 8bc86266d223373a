#!/usr/bin/env python3
"""Compares block schedules and tiers of `twill offload`, in turn. Prints a Markdown table of medians.

    offload.py --model dummy:opt-125m --prompt-len 512 --batches 4,8 --orders zigzag,diagonal,fused
    offload.py --model dummy:opt-125m --prompt-len 128 --batches 1,4,8 --tiers w25,w0,kv0 --rounds 3

Tiers: `resident` has everything on the device and is always run. wN has N % of the weights on the device and the rest
on disk; kvN has N % of the KV on the device and the rest on disk. For wN and kvN, the table shows how near decoding
comes to two bounds, in percent, over the rounds that only decode:
- each alone: the larger of two times: the time of the same round in the resident run, and the time to read the moved
  bytes at the speed that `twill-bench disk` reaches alone;
- side by side: computing and reading run at the speeds that they have while both run (measured by a resident run beside
  `twill-bench disk`, round by round) until one of them is finished, and the other then goes on at its speed alone.
  Where the device is the host's processor, computing and reading share cores and memory.

The speeds for the bounds are measured on the very file that the run used, which the script keeps open, because a disk
may be a tenth slower in one place than in another. The file has no name any more, so the script works on Linux only,
where an open file can be reached through /proc.
With tiers, `diagonal` means diagonal/1, so that the rounds are the same in every tier. Arguments after `--` are passed
to every run of twill offload. TWILL_BIN says where the programs are.
"""
import bisect
import csv
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile

from harness import heading, parser, program, row, spread


def percent(tier):
    if tier == "resident":
        return ["100", "0", "100", "0", "100", "0"]
    kind, share = re.fullmatch(r"(w|kv)(\d+)", tier).groups()
    return ["100", "0", share, "0", "100", "0"] if kind == "kv" else [share, "0", "100", "0", "100", "0"]


def offload_file(process):
    """Opens the process's file of the disk tier; None while the process has none."""
    folder = f"/proc/{process.pid}/fd"
    try:
        for name in os.listdir(folder):
            if "/twill-offload-" in os.readlink(f"{folder}/{name}"):
                return os.open(f"{folder}/{name}", os.O_RDONLY)
    except FileNotFoundError:  # the file was just closed, or the process has ended
        pass
    return None


def output_and_store(command):
    """Runs the command. Returns what it prints, and an open descriptor of its last file of the disk tier, or None."""
    store = None
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=printed, stderr=errors)
        while True:
            newer = offload_file(process)
            if newer is not None:
                if store is not None:
                    os.close(store)
                store = newer
            try:
                process.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                pass
        printed.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            sys.exit(errors.read() or f"{command[0]} ended with {process.returncode}")
        return printed.read(), store


def run(options, batches, order, tier):
    """One run's figures by name, in seconds and bytes; "store" is an open descriptor of the run's file of the disk tier."""
    command = [program("twill"), "offload",
               "--model", options.model, "--prompt-len", str(options.prompt_len), "--gen-len",
               str(options.gen_len), "--gpu-batch-size", str(options.batch_size), "--num-gpu-batches",
               str(batches), "--search-order", order.split("/")[0], "--percent", *percent(tier)]
    if "/" in order:
        command += ["--stagger", order.split("/")[1]]
    if options.offload_dir:
        command += ["--offload-dir", options.offload_dir]
    with tempfile.NamedTemporaryFile("r", suffix=".csv") as rounds_file:
        text, store = output_and_store(command + ["--rounds", rounds_file.name] + options.more)
        each = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(rounds_file)]

    def number(pattern):
        return float(re.search(pattern, text)[1])

    # Only rounds that decode and do nothing else; both times are rounded to microseconds.
    decodes = [n for n, row in enumerate(each) if row["seconds"] - row["decode_seconds"] < 5e-6]
    rounds = number(r"per round \((\d+) rounds\)")
    return {
        "store": store,
        "decode rounds": {n: each[n]["seconds"] for n in decodes},
        "ended": {n: each[n]["ended"] for n in decodes},
        "read": {n: each[n]["moved_bytes"] for n in decodes},
        "moving": 100 * sum(each[n]["moving_seconds"] for n in decodes) / sum(each[n]["seconds"] for n in decodes),
        "prefill": number(r"prefill latency: ([\d.]+)"), "decode": number(r"decode latency: ([\d.]+)"),
        "prefill rate": number(r"prefill throughput: ([\d.]+)"),
        "decode rate": number(r"decode throughput: ([\d.]+)"),
        "total rate": number(r"total throughput: ([\d.]+)"),
        "memory": number(r"peak gpu mem: ([\d.]+)"), "rounds": rounds,
        "error": abs(number(r"measured \(([-+][\d.]+) %\)")),
        "waited": number(r"compute waited ([\d.]+) s for weights"),
        "moved": sum(row["moved_bytes"] for row in each),
    }


class disk_reader:
    """Runs `twill-bench disk` on an open file during the `with` block. Afterwards speed() gives its rate between two moments."""

    def __init__(self, store, seconds=3600.0):
        self.store = store
        self.samples = tempfile.NamedTemporaryFile("r", suffix=".csv")
        self.command = [program("twill-bench"), "disk", "--file", f"/proc/self/fd/{store}", "--samples",
                        self.samples.name, "--seconds", str(seconds)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True,
                                        pass_fds=[self.store])
        self.process.stdout.readline()  # the first line shows that it has begun to read
        return self

    def __exit__(self, *what):
        self.process.send_signal(signal.SIGTERM)
        self.result = self.process.communicate()[0]
        self.at, self.bytes = zip(*((float(row["at"]), float(row["bytes"]))
                                    for row in csv.DictReader(self.samples)))

    def speed(self, began, ended):
        """Bytes per second between two moments of the monotonic clock."""
        def read_until(moment):
            i = min(max(bisect.bisect(self.at, moment), 1), len(self.at) - 1)
            share = (moment - self.at[i - 1]) / (self.at[i] - self.at[i - 1])
            return self.bytes[i - 1] + share * (self.bytes[i] - self.bytes[i - 1])
        return (read_until(ended) - read_until(began)) / (ended - began)


def disk_speed(store):
    """Bytes per second that `twill-bench disk` reads when nothing else runs."""
    with disk_reader(store, 1.5) as reader:
        reader.process.wait()
    return 1e9 * float(re.search(r"([\d.]+) GB/s", reader.result)[1])


def run_beside_reader(options, batches, order, store):
    """A resident run's figures, with the rate that the disk reader reached during each of its rounds."""
    with disk_reader(store) as reader:
        figures = run(options, batches, order, "resident")
    figures["disk"] = {n: reader.speed(ended - figures["decode rounds"][n], ended)
                       for n, ended in figures["ended"].items()}
    return figures


def run_and_bounds(options, cell, resident):
    """The figures of a run with data outside the device, and how near it comes to the bounds that disk and compute set."""
    figures = run(options, *cell)
    store = figures["store"]
    if store is None:
        sys.exit(f"{cell}: no file of the disk tier was seen; are its processes' /proc entries readable?")
    before = disk_speed(store)
    beside = run_beside_reader(options, *cell[:2], store)
    figures["disk"] = (before + disk_speed(store)) / 2
    os.close(store)
    figures["disk beside"] = statistics.mean(beside["disk"].values())
    figures["slower"] = 100 * (sum(beside["decode rounds"].values()) / sum(resident["decode rounds"].values()) - 1)
    figures["share"], figures["share beside"] = shares_of_bounds(figures, resident, beside)
    return figures


def bound_alone(compute, read, disk):
    """Seconds of a round that computes for `compute` seconds and at the same time reads `read` bytes at `disk` bytes/s."""
    return max(compute, read / disk)


def bound_together(compute, read, disk, compute_beside, disk_beside):
    """Seconds of a round in which computing and reading slow each other down until one is finished; the other then goes
    on alone."""
    both = min(compute_beside, read / disk_beside)
    return both + max(compute * (1 - both / compute_beside), (read - both * disk_beside) / disk)


def shares_of_bounds(figures, alone, beside):
    """How near the rounds come to both bounds, in percent."""
    mine, moved = figures["decode rounds"], figures["read"]
    def share(bound):
        return 100 * sum(bound(n) for n in mine) / sum(mine.values())
    computed, disk = alone["decode rounds"], figures["disk"]
    return (share(lambda n: bound_alone(computed[n], moved[n], disk)),
            share(lambda n: bound_together(computed[n], moved[n], disk, beside["decode rounds"][n], beside["disk"][n])))


def main():
    arguments = sys.argv[1:]
    more = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, more = arguments[:at], arguments[at + 1:]
    flags = parser(__doc__)
    flags.add_argument("--model", required=True)
    flags.add_argument("--prompt-len", type=int, default=512)
    flags.add_argument("--gen-len", type=int, default=32)
    flags.add_argument("--batch-size", type=int, default=8)
    flags.add_argument("--batches", default="4,8,16,32")
    flags.add_argument("--orders", default="zigzag,diagonal,fused", help="diagonal/N: --stagger N")
    flags.add_argument("--tiers", default="")
    flags.add_argument("--rounds", type=int, default=1)
    flags.add_argument("--offload-dir", default="")
    options = flags.parse_args(arguments)
    options.more = more
    tiers = ["resident"] + [t for t in options.tiers.split(",") if t]
    streams = len(tiers) > 1
    orders = ["diagonal/1" if streams and order == "diagonal" else order for order in options.orders.split(",")]
    cells = [(int(n), order, tier) for n in options.batches.split(",") for order in orders for tier in tiers]
    figures_of = {cell: [] for cell in cells}
    for _ in range(options.rounds):
        for cell in cells:
            if cell[2] == "resident":
                figures = resident = run(options, *cell)
            else:
                figures = run_and_bounds(options, cell, resident)
            figures_of[cell].append(figures)
            print(*cell, f"{figures['total rate']:.1f} tokens/s", file=sys.stderr, flush=True)

    heading(f"{options.model}: GPU batches of {options.batch_size}", "schedule", *(["tiers"] if streams else []),
            "prefill tokens/s", "decode tokens/s", "total tokens/s", "peak memory GB (off by at most)",
            *(["rounds", "moved GB", "disk alone GB/s", "beside compute", "compute beside the disk +%", "waited for weights s",
               "transfers under way %", "of the bound, each alone %", "side by side %"] if streams else []))
    for cell, figures in figures_of.items():
        def column(name, digits, scale=1.0):
            return spread([f[name] / scale for f in figures], f".{digits}f") if name in figures[0] else ""
        line = [str(cell[0]), cell[1]] + ([cell[2]] if streams else [])
        line += [column("prefill rate", 0), column("decode rate", 0), column("total rate", 1),
                 f"{figures[0]['memory']:.3f} ({max(f['error'] for f in figures):.1f} %)"]
        if streams:
            line += [f"{figures[0]['rounds']:.0f}",
                     f"{figures[0]['moved'] / 1e9:.2f}",
                     column("disk", 2, 1e9), column("disk beside", 2, 1e9), column("slower", 0),
                     column("waited", 2), column("moving", 0), column("share", 0), column("share beside", 0)]
        row(*line)


if __name__ == "__main__":
    main()
