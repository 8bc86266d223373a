"""The part `daemon`: twilld serves random models of the shapes that the published measurements used, and twill-bench asks it.

On a GPU every matrix has its published shape; a model has as many layers as --layers says, so that one is packed and measured in
seconds. On the host a model is tiny. A row says how many layers it measured of how many.
"""

import json
import re
import shutil
import time

from .context import SECONDS_LEAST, error_words
from .parts_measure import torch_run

# What makes each preset tiny.
MODELS = {"mistral-7b-awq": {"hidden": 256, "heads": 4, "kv-heads": 2, "mlp": 512},
          "baichuan2-13b-gptq": {"hidden": 256, "heads": 4, "mlp": 512},
          "chatglm3-6b": {"hidden": 128, "heads": 4, "mlp": 256},
          "qwen-14b": {"hidden": 128, "heads": 4, "mlp": 256},
          "opt-1.3b": {"hidden": 128, "heads": 4, "mlp": 256}}
TINY_LAYERS, TINY_VOCAB = 2, 2048
MODEL_SECONDS, LOAD_SECONDS, TORCH_SECONDS = 90, 60, 60
LENGTHS = {"cuda": (128, 64), "host": (32, 16)}  # tokens of a prompt and of a reply
TORCH_RUNS = {"cuda": 3, "host": 1}
LOADS = ((1, 3), (32, 32))  # requests at once, requests


def presets(context):
    """The shapes that twill-synth lists, as numbers by name; None, and a row, where it lists none."""
    path = context.program("twill-synth")
    listed = context.run("twill-synth --list", [path, "--list"], 20) if path else None
    if listed is None:
        return None
    names = ("hidden", "layers", "heads", "kv-heads", "mlp", "vocab")
    shapes = {}
    for line in listed.output.splitlines():
        words = line.split()
        if len(words) > 7 and all(word.isdigit() for word in words[2:8]):
            shapes[words[0]] = {"family": words[1], **dict(zip(names, map(int, words[2:8])))}
    if missing := [name for name in MODELS if name not in shapes]:
        context.failed("twill-synth --list", f"it must list {', '.join(missing)}: {error_words(listed)}")
        return None
    return shapes


def daemon(context) -> None:
    if not (context.program("twilld") and context.program("twill-bench")):
        return
    published = presets(context)
    if published is None:
        return
    changes = {preset: changes_of(context, preset, published[preset]) for preset in MODELS}
    lengths = "{} in, {} out".format(*LENGTHS[context.device])
    sizes = {preset: f"{changes[preset]['layers']} of {published[preset]['layers']} layers{', tiny' if context.host else ''}, {lengths}"
             for preset in MODELS}
    rates = beside(context, {preset: published[preset] | changes[preset] for preset in MODELS}, sizes)
    for preset in MODELS:
        if context.seconds_left() < SECONDS_LEAST:
            context.not_run(preset, "no time")
        else:
            serve(context, preset, "&".join(f"{key}={value}" for key, value in changes[preset].items()), sizes[preset], rates)


def changes_of(context, preset: str, published: dict) -> dict:
    """What the measured model has in place of the published sizes."""
    if not context.host:
        return {"layers": min(context.layers or published["layers"], published["layers"])}
    tiny = MODELS[preset]
    # As twill does, a preset with a KV head for each head keeps one.
    one_each = {"kv-heads": tiny["heads"]} if published["kv-heads"] == published["heads"] else {}
    return {"layers": TINY_LAYERS, "vocab": TINY_VOCAB, **one_each, **tiny}


def serve(context, preset: str, options: str, size: str, rates: dict) -> None:
    """Starts twilld, measures it under each load and stops it. `rates` are PyTorch's."""
    address = context.scratch / "address"
    address.unlink(missing_ok=True)
    command = [context.bundle.program("twilld"), "--model", f"dummy:{preset}?{options}", "--listen", "127.0.0.1:0", "--address-file",
               address, "--set", f"device.kind={context.device}"]
    twilld = context.start(command, MODEL_SECONDS)
    ready = None
    while not twilld.done and not (ready and address.exists()):  # its words may come after its address
        context.runner.pump(0.05)
        ready = re.search(r"is ready on (\w+) \((.*)\) with", twilld.output)
    try:
        if twilld.done:
            context.failed(f"{preset}: twilld", f"it is not ready: {twilld.how_it_ended()}: {error_words(twilld)}", twilld.seconds)
            return
        if ready.group(1) != context.device:
            context.failed(f"{preset}: twilld", f"the device must be {context.device}, got {ready.group(1)}")
            return
        context.passed(f"{preset}: twilld", f"ready on {ready.group(1)} ({ready.group(2)})", time.monotonic() - twilld.begin, shown=False)
        for at_once, requests in LOADS:
            also = f"; PyTorch {rates[preset, at_once]} tokens/s" if (preset, at_once) in rates else ""
            load(context, f"{preset}, {at_once} at once", address.read_text(encoding="utf-8").strip(), at_once, requests, size + also)
    finally:
        context.runner.stop(twilld)
    if not twilld.passed:
        context.failed(f"{preset}: end of twilld", f"{twilld.how_it_ended()}: {error_words(twilld)}", twilld.seconds)


def load(context, name: str, address: str, at_once: int, requests: int, size: str) -> None:
    result = context.scratch / "result"
    shutil.rmtree(result, ignore_errors=True)
    tokens_in, tokens_out = LENGTHS[context.device]
    command = [context.bundle.program("twill-bench"), "--backend", "twill-stream", "--base-url", f"http://{address}",
               "--random-input-len", tokens_in, "--random-output-len", tokens_out, "--ignore-eos", "--max-concurrency", at_once,
               "--num-prompts", requests, "--num-warmups", 1, "--no-progress", "--save-result", "--result-dir", result,
               "--result-filename", "result.json"]
    ran = context.run(name, command, LOAD_SECONDS)
    if ran is None:
        return
    try:
        figures = json.loads((result / "result.json").read_text(encoding="utf-8"))
        figures = {key: figures[key] for key in ("completed", "output_throughput", "median_ttft_ms", "median_tpot_ms")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        context.failed(name, f"{ran.how_it_ended()}: no result: {type(error).__name__} {error}: {error_words(ran)}", ran.seconds)
        return
    fault = "" if figures["completed"] == requests else f"all {requests} requests must be completed, got {figures['completed']}"
    words = (f"{figures['output_throughput']:.1f} tokens/s, TTFT {figures['median_ttft_ms']:.1f} ms, "
             f"TPOT {figures['median_tpot_ms']:.2f} ms ({size})")
    context.judge(name, ran, fault, words, **figures)


def beside(context, shapes: dict, sizes: dict) -> dict:
    """The same loads by PyTorch's decoder, in one process: tokens a second by preset and requests at once."""
    texts = {preset: [*(shape[key] for key in ("hidden", "layers", "heads", "kv-heads", "mlp", "vocab")), int(shape["family"] != "opt")]
             for preset, shape in shapes.items()}
    loads = [at_once for at_once, _ in LOADS]
    tokens_in, tokens_out = LENGTHS[context.device]
    lines = torch_run(context, "PyTorch's decoders",
                      ["--shape", *(",".join(map(str, text)) for text in texts.values()), "--at-once", *loads, "--input-len", tokens_in,
                       "--output-len", tokens_out, "--runs", TORCH_RUNS[context.device]], TORCH_SECONDS)
    found = {}
    for preset, text in texts.items():
        for at_once in loads:
            runs = [line for line in lines or () if line.get("shape") == text and line.get("at_once") == at_once]
            if runs:
                best = max(runs, key=lambda line: line["output_tokens_per_s"])
                found[preset, at_once] = best["output_tokens_per_s"]
                context.passed(f"{preset}, PyTorch, {at_once} at once", f"{best['output_tokens_per_s']} tokens/s ({sizes[preset]})",
                               shown=False, **best)
    return found
