#!/usr/bin/env python3
"""Writes tests/golden/gguf_rope.json: what llama.cpp computes for tiny GGUF files that scale rotary positions in many ways.

The weights follow from a formula (`weights`), which the test repeats, so that no file needs to be kept. Each case has an
architecture, the metadata keys that it adds, a prompt and the log-probabilities of the first ids after it.

usage: gguf_rope.py OUT.json   (with xllamacpp 2026.10.11549, gguf and numpy from PyPI)
"""

import json
import sys
import tempfile

import numpy as np
import xllamacpp
from gguf import GGUFWriter

LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD, MLP, CONTEXT = 2, 32, 2, 1, 16, 64, 64
N_BYTES, VOCAB = 256, 320
PROMPT = [(7 * i * i + 3 * i + 5) % N_BYTES for i in range(48)]
SHOWN = 24

YARN = {"type": "yarn", "factor": 4.0, "original_context_length": 16}
CASES = [
    ("llama", {}), ("qwen2", {}), ("qwen3", {}),
    ("llama", YARN), ("qwen2", YARN), ("qwen3", YARN),
    ("llama", {"type": "yarn", "factor": 4.0}),
    ("llama", {"type": "yarn"}),
    ("llama", {"type": "yarn", "factor": 0.5}),
    ("llama", {**YARN, "original_context_length": 64, "factor": 32.0}),
    ("llama", {**YARN, "attn_factor": 0.7}),
    ("qwen2", {**YARN, "attn_factor": 1.3}),
    ("llama", {**YARN, "yarn_beta_fast": 4.0, "yarn_beta_slow": 0.25}),
    ("llama", {**YARN, "yarn_log_multiplier": 0.5}),
    ("llama", {**YARN, "yarn_ext_factor": 0.3, "yarn_attn_factor": 0.5}),
    ("llama", {**YARN, "frequency_factors": True}),
    ("qwen3", {**YARN, "freq_base": 500.0}),
    ("llama", {"type": "linear", "factor": 4.0}),
    ("qwen2", {"type": "linear", "factor": 4.0, "attn_factor": 0.7}),
    ("llama", {"factor": 4.0}),
    ("llama", {"type": "none", "factor": 4.0}),
    ("llama", {"scale_linear": 4.0}),
    ("llama", {"type": "none", "scale_linear": 4.0}),
    ("llama", {"type": "linear", "factor": 2.0, "scale_linear": 4.0}),
    ("llama", {"type": "linear", "factor": 0.0}),
]


def key_of(arch, name):
    if name in ("freq_base", "scale_linear"):
        return f"{arch}.rope.{name}"
    return f"{arch}.rope.scaling.{name}"


def weights(number, n):
    """The values of tensor `number`: uniform in -0.3..0.3 by an integer hash of their places."""
    x = (np.arange(n, dtype=np.uint64) * 2654435761 + number * 40503 + 12345) & 0xFFFFFFFF
    x ^= x >> np.uint64(16)
    x = (x * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(13)
    return ((x.astype(np.float64) / 2.0**32 - 0.5) * 0.6).astype(np.float32)


def tensors(arch):
    """Names and shapes, outermost first, in the order of their numbers. Norms are 1 + their weights."""
    yield "token_embd.weight", (VOCAB, HIDDEN)
    yield "output_norm.weight", (HIDDEN,)
    yield "output.weight", (VOCAB, HIDDEN)
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        yield at + "attn_norm.weight", (HIDDEN,)
        yield at + "attn_q.weight", (HEADS * HEAD, HIDDEN)
        yield at + "attn_k.weight", (KV_HEADS * HEAD, HIDDEN)
        yield at + "attn_v.weight", (KV_HEADS * HEAD, HIDDEN)
        yield at + "attn_output.weight", (HIDDEN, HEADS * HEAD)
        yield at + "ffn_norm.weight", (HIDDEN,)
        yield at + "ffn_gate.weight", (MLP, HIDDEN)
        yield at + "ffn_up.weight", (MLP, HIDDEN)
        yield at + "ffn_down.weight", (HIDDEN, MLP)
        if arch == "qwen2":
            yield at + "attn_q.bias", (HEADS * HEAD,)
            yield at + "attn_k.bias", (KV_HEADS * HEAD,)
            yield at + "attn_v.bias", (KV_HEADS * HEAD,)
        if arch == "qwen3":
            yield at + "attn_q_norm.weight", (HEAD,)
            yield at + "attn_k_norm.weight", (HEAD,)


def printable_bytes():
    """GPT-2's printable character of each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def write_model(path, arch, keys):
    writer = GGUFWriter(path, arch)
    for name, number in (("context_length", CONTEXT), ("embedding_length", HIDDEN), ("block_count", LAYERS),
                         ("feed_forward_length", MLP), ("attention.head_count", HEADS),
                         ("attention.head_count_kv", KV_HEADS)):
        writer.add_uint32(f"{arch}.{name}", number)
    writer.add_float32(f"{arch}.attention.layer_norm_rms_epsilon", 1e-5)
    for name, given in keys.items():
        if name == "frequency_factors":
            continue
        add = {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32}[type(given)]
        add(key_of(arch, name), given)
    byte = printable_bytes()
    words = [byte[b] for b in range(N_BYTES)] + [f"<unused{i}>" for i in range(VOCAB - N_BYTES)]
    writer.add_string("tokenizer.ggml.model", "gpt2")
    writer.add_string("tokenizer.ggml.pre", "gpt-2")
    writer.add_array("tokenizer.ggml.tokens", words)
    writer.add_array("tokenizer.ggml.token_type", [1] * N_BYTES + [5] * (VOCAB - N_BYTES))
    writer.add_array("tokenizer.ggml.merges", [byte[0] + " " + byte[1]])
    writer.add_uint32("tokenizer.ggml.eos_token_id", VOCAB - 1)
    writer.add_bool("tokenizer.ggml.add_bos_token", False)
    for number, (name, shape) in enumerate(tensors(arch)):
        values = weights(number, int(np.prod(shape))).reshape(shape)
        writer.add_tensor(name, values + 1 if "norm" in name else values)
    if keys.get("frequency_factors"):
        writer.add_tensor("rope_freqs.weight", np.arange(1, HEAD // 2 + 1, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def log_probabilities(path):
    """Log-probabilities of the ids after the prompt, by llama.cpp, everything in f32."""
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx, params.n_parallel, params.warmup, params.n_gpu_layers = 64, 1, False, 0
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    answer = server.handle_completions({"prompt": PROMPT, "n_predict": 1, "n_probs": VOCAB, "temperature": 0,
                                        "cache_prompt": False, "logit_bias": [[65, 100]]})
    if isinstance(answer, (bytes, str)):
        answer = json.loads(answer)
    found = answer.get("completion_probabilities") or answer["choices"][0]["logprobs"]["content"]
    return {entry["id"]: entry["logprob"] for entry in found[0]["top_logprobs"]}


def main(out):
    cases = []
    for arch, keys in CASES:
        with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
            write_model(file.name, arch, keys)
            found = log_probabilities(file.name)
        cases.append({"arch": arch, "keys": keys, "logprobs": [round(found[i], 5) for i in range(SHOWN)]})
        print(arch, keys, cases[-1]["logprobs"][:4], file=sys.stderr)
    with open(out, "w") as file:
        lines = ",\n".join("  " + json.dumps(case) for case in cases)
        file.write('{"made_by": "tools/golden/gguf_rope.py with xllamacpp %s",\n "prompt": %s,\n "cases": [\n%s\n]}\n'
                   % (xllamacpp.__version__, json.dumps(PROMPT), lines))


if __name__ == "__main__":
    main(sys.argv[1])
