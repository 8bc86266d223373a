"""The parts that measure: card, ceilings, kernels, harness and daemon."""

import json
import os
import pathlib
import re
import shutil
import sys

from .context import error_words

TORCH = pathlib.Path(__file__).resolve().parent.parent / "torch_beside.py"
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
    """Runs torch_beside.py; returns its lines of figures, or None, and a row, where it could not measure."""
    device = "cpu" if context.host else "cuda"
    ran = context.run(name, [sys.executable, TORCH, "--device", device, *arguments], seconds, bundled=False)
    if ran is None:
        return None
    if ran.status == NO_TORCH:
        context.not_run(name, ran.last_words())
        return None
    if not ran.passed:
        context.failed(name, f"{ran.how_it_ended()}: {error_words(ran)}", ran.seconds)
        return None
    return json_lines(ran.output)


def ceilings(context) -> None:
    for line in torch_run(context, "PyTorch's ceilings", ["--ceilings"], 60) or ():
        if "rate" in line:
            context.ceilings[line["name"]] = line["rate"]
            context.passed(f"PyTorch: {line['name']}", f"{line['rate']} {line['unit']}", line["us"] / 1e6, rate=line["rate"],
                           unit=line["unit"])


def kernels(context) -> None:
    path = context.program("twill-bench")
    if path is None:
        return
    out = context.scratch / "kernels.jsonl"
    small = ["--small", "--seconds", "0.01"] if context.host else []
    ran = context.run("twill-bench kernels", [path, "kernels", "--device", context.device, "--json", out, *small], 600)
    if ran is None:
        return
    lines = read_json_lines(out)
    context.report.keep(out, "kernels.jsonl")
    kind = next((line["kind"] for line in lines if "kind" in line), None)
    for line in lines:
        if "op" in line:
            context.passed(f"{line['op']} {line.get('shape', '')}", kernel_words(context, line), shown="layer" in line["op"], **line)
    fault = "" if kind == context.device else f"the device must be {context.device}, got {kind}"
    context.judge("twill-bench kernels", ran, fault, f"{kind}: {sum('op' in line for line in lines)} cases")


def read_json_lines(path: pathlib.Path) -> list:
    try:
        return json_lines(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return []


def kernel_words(context, line: dict) -> str:
    """The figures of a kernel in a few words, and its rate as a share of PyTorch's copy where that was measured."""
    words = [f"{line['us']:.1f} us", f"{line['gb_per_s']:.1f} GB/s"]
    if copy := context.ceilings.get("copy"):
        words.append(f"{100 * line['gb_per_s'] / copy:.0f} % of PyTorch's copy")
    return ", ".join(words)


def harness(context) -> None:
    """On the host it is built where nvcc is, and not run: it has no form for the host."""
    build = context.root / "tools/gpu-kernels/build"
    if not build.exists():
        context.failed("gpu_kernels, build", f"{build.relative_to(context.root)} is not in the tree")
        return
    if not tool(context, "gpu_kernels, build", "nvcc"):
        return
    folder = context.scratch / "gpu-kernels"
    built = context.run("gpu_kernels, build", [build, folder], 300, bundled=False)
    if built is None or not context.judge("gpu_kernels, build", built):
        return
    if context.host:
        context.not_run("gpu_kernels", "it needs a GPU")
        return
    ran = context.run("gpu_kernels", [folder / "gpu_kernels"], 120, bundled=False)
    if ran is None:
        return
    for line in ran.output.splitlines():
        if re.search(r"\d", line) and not line.startswith("{"):
            context.passed("gpu_kernels", line)
    context.judge("gpu_kernels", ran)
