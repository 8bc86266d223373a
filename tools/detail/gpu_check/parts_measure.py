"""The parts that measure: card, ceilings, kernels, harness and daemon."""

import json
import os
import pathlib
import re
import shutil
import sys
import time

from .context import error_words

TORCH = pathlib.Path(__file__).resolve().parent.parent / "torch_beside.py"
TIMED = {"us", "gb_per_s", "timed_by"}  # what every record of a measured kernel has
HUNG_SECONDS = 20  # a case of twill-bench kernels that takes longer hangs
NO_TORCH = 3  # its exit status where PyTorch is missing
SMI_FIELDS = "name,driver_version,memory.total,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.limit"


def json_lines(text: str) -> list:
    """The objects among the lines of a text."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return [one for one in found if isinstance(one, dict)]


def card(context) -> None:
    about = context.bundle.about()
    context.passed("bundle", f"commit {about.get('commit', 'unknown')}, device code {about.get('device_code', 'unknown')}", **about)
    context.passed("machine", f"{processor()}, {os.cpu_count()} cores, Linux {os.uname().release}")
    if path := context.program("twill"):
        doctor = context.run("twill doctor", [path, "doctor", "--set", f"device.kind={context.device}"], 60)
        if doctor is not None:
            said = dict(re.findall(r"^ +(kind|name|kernels) +(\S.*)$", doctor.output, re.MULTILINE))
            fault = "" if said.get("kind") == context.device else f"the device must be {context.device}, got {said.get('kind', 'none')}"
            context.judge("twill doctor", doctor, fault, f"{said.get('kind')}: {said.get('name')}, {said.get('kernels')}")
    if context.host:
        context.not_run("nvidia-smi", "it needs a GPU")
    elif smi := tool(context, "nvidia-smi", "nvidia-smi"):
        asked = context.run("nvidia-smi", [smi, f"--query-gpu={SMI_FIELDS}", "--format=csv,noheader"], 20)
        if asked is not None:
            context.judge("nvidia-smi", asked, "" if asked.output.strip() else "it names no GPU", " ".join(asked.output.split()))
    if nvcc := tool(context, "nvcc", "nvcc"):
        asked = context.run("nvcc", [nvcc, "--version"], 20)
        if asked is not None:
            context.judge("nvcc", asked, words=next((line for line in asked.output.splitlines() if "release" in line), ""))


def tool(context, row: str, name: str):
    """The path of a tool of this machine; None, and a row, where it has none."""
    found = shutil.which(name) or shutil.which(f"/usr/local/cuda/bin/{name}")
    if found is None:
        context.not_run(row, f"{name} is not on this machine")
    return found


def processor() -> str:
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "an unknown processor"


def torch_run(context, name: str, arguments, seconds: float):
    """Runs torch_beside.py; returns its lines of figures, which are those before a failure where it has one, or None where
    it did not run. Only the first row says that there is no PyTorch."""
    if context.has_no_torch:
        return None
    device = "cpu" if context.host else "cuda"
    ran = context.run(name, [sys.executable, TORCH, "--device", device, *arguments], seconds, bundled=False)
    if ran is None:
        return None
    if ran.status == NO_TORCH:
        context.has_no_torch = True
        context.not_run("PyTorch", ran.last_words())
        return None
    if not ran.passed:
        context.failed(name, f"{ran.how_it_ended()}: {error_words(ran)}", ran.seconds)
    return json_lines(ran.output)


def ceilings(context) -> None:
    for line in torch_run(context, "PyTorch's ceilings", ["--ceilings"], 60) or ():
        if "rate" in line:
            context.ceilings[line["name"]] = line["rate"]
            context.passed(f"PyTorch: {line['name']}", f"{line['rate']} {line['unit']}", line["us"] / 1e6, rate=line["rate"],
                           unit=line["unit"])


def kernels(context) -> None:
    """The seed models' layers and decode attention come before the single ops, which have less to say and are many."""
    path = context.program("twill-bench")
    small = ["--small", "--seconds", "0.002"] if context.host else []
    for groups, seconds in (("layers,decode", "0.05"), ("linear,attention,rows", "0.02")) if path else ():
        name = f"twill-bench kernels --group {groups}"
        out = context.scratch / f"kernels-{groups.replace(',', '-')}.jsonl"
        ran = context.run(name, [path, "kernels", "--device", context.device, "--group", groups, "--json", out,
                                 *(small or ["--seconds", seconds])], 300)
        if ran is None:
            return
        context.report.keep(out, out.name)
        records = read_json_lines(out)
        kind = next((record.get("kind") for record in records if record.get("record") == "device"), None)
        cases = [record for record in records if record.get("record") == "case" and TIMED <= record.keys()]
        for case in cases:
            context.passed(f"{case.get('op')}, {case.get('shape')}", rate_words(context, case), case["us"] / 1e6,
                           str(case.get("op")).startswith(("layer ", "decode ")), **figures_of(case))
        if ran.timed_out and cases and time.time() - out.stat().st_mtime < HUNG_SECONDS:
            context.not_run(name, f"no time for the cases after the first {len(cases)}")
            return
        fault = "" if kind == context.device else f"the device must be {context.device}, got {kind}"
        context.judge(name, ran, fault or ("" if cases else "it measured nothing"), f"{kind}: {len(cases)} cases")


def read_json_lines(path: pathlib.Path) -> list:
    try:
        return json_lines(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return []


def figures_of(record: dict) -> dict:
    return {key: value for key, value in record.items() if key not in ("record", "name", "seconds", "words", "shown", "part", "outcome")}


def rate_words(context, record: dict) -> str:
    """The figures of a kernel in a few words: its rate as a share of its own program's ceilings, and of PyTorch's copy."""
    words = [f"{record['us']:.1f} us", f"{record['gb_per_s']:.1f} GB/s"]
    words += [f"{100 * record[key]:.0f} % of {of}" for key, of in (("share_of_read", "read"), ("share_of_copy", "copy"),
                                                                   ("share_of_peak", "peak")) if record.get(key)]
    if copy := context.ceilings.get("copy"):
        words.append(f"{100 * record['gb_per_s'] / copy:.0f} % of PyTorch's copy")
    return ", ".join(words) + f" ({record['timed_by']})"


def harness(context) -> None:
    """On the host it is built where nvcc is, and not run: it has no form for the host."""
    build = context.root / "tools/gpu-kernels/build"
    if not build.exists():
        context.failed("gpu-kernels, build", f"{build.relative_to(context.root)} is not in the tree")
        return
    if not tool(context, "gpu-kernels, build", "nvcc"):
        return
    folder, out = context.scratch / "gpu-kernels", context.scratch / "gpu-kernels.jsonl"
    built = context.run("gpu-kernels, build", [build, folder], 300, bundled=False)
    if built is not None and built.timed_out and context.host:
        context.not_run("gpu-kernels, build", f"no time: {built.how_it_ended()}")
        return
    fault = "" if (folder / "gpu-kernels").exists() else f"{build.relative_to(context.root)} must make gpu-kernels"
    if built is None or not context.judge("gpu-kernels, build", built, fault, built.last_words()):
        return
    if context.host:
        context.not_run("gpu-kernels", "it needs a GPU")
        return
    ran = context.run("gpu-kernels", [folder / "gpu-kernels", "--json", out], 120, bundled=False)
    if ran is None:
        return
    context.report.keep(out, out.name)
    records = read_json_lines(out)
    for record in records:
        name = f"{record.get('kernel')}, {record.get('shape')}"
        if record.get("record") == "check" and not record.get("right"):
            context.failed(name, str(record.get("fault")), **figures_of(record))
        elif record.get("record") == "time" and TIMED <= record.keys():
            context.passed(name, rate_words(context, record), record["us"] / 1e6, **figures_of(record))
    kind = next((record.get("kind") for record in records if record.get("record") == "device"), None)
    context.judge("gpu-kernels", ran, "" if kind == "cuda" else f"the device must be cuda, got {kind}")
