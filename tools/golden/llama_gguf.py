#!/usr/bin/env python3
"""Writes a Llama checkpoint folder (config.json, model.safetensors) as a GGUF file.

Standard library only. Rows of Q and K are reordered so that rotary pairs (i, i + d/2) lie next to
each other, norms become F32, matrices keep their 16-bit kind; a llama3 rope scaling becomes the
tensor rope_freqs.weight. A byte-level tokenizer.json, if there is one, is carried over.

usage: llama_gguf.py CHECKPOINT_FOLDER OUT.gguf
"""
import json
import math
import os
import struct
import sys

ALIGNMENT = 32
KIND = {"F32": 0, "F16": 1, "BF16": 30}
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5


def read_safetensors(path):
    with open(path, "rb") as f:
        data = f.read()
    n, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[8 + n + t["data_offsets"][0]:8 + n + t["data_offsets"][1]])
            for name, t in header.items()}


def to_f32(dtype, raw):
    if dtype == "F32":
        return raw
    if dtype == "BF16":
        return b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2))
    return struct.pack(f"<{len(raw) // 2}f", *struct.unpack(f"<{len(raw) // 2}e", raw))


def interleave_rows(raw, rows, n_heads):
    row = len(raw) // rows
    d = rows // n_heads
    order = [h * d + j * (d // 2) + i for h in range(n_heads) for i in range(d // 2) for j in range(2)]
    return b"".join(raw[r * row:(r + 1) * row] for r in order)


def rope_factors(config, head_dim):
    s = config["rope_scaling"]
    low = s["original_max_position_embeddings"] / s["low_freq_factor"]
    high = s["original_max_position_embeddings"] / s["high_freq_factor"]
    factors = []
    for i in range(0, head_dim, 2):
        wave = 2 * math.pi * config["rope_theta"] ** (i / head_dim)
        if wave < high:
            factors.append(1.0)
        elif wave > low:
            factors.append(s["factor"])
        else:
            smooth = ((s["original_max_position_embeddings"] / wave - s["low_freq_factor"])
                      / (s["high_freq_factor"] - s["low_freq_factor"]))
            factors.append(1 / ((1 - smooth) / s["factor"] + smooth))
    return struct.pack(f"<{len(factors)}f", *factors)


def string(s):
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


def pair(key, kind, value):
    head = string(key) + struct.pack("<I", kind)
    if kind == STRING:
        return head + string(value)
    return head + struct.pack({U32: "<I", F32: "<f", BOOL: "<B"}[kind], value)


def array(key, kind, values):
    body = b"".join(string(v) if kind == STRING else struct.pack("<i", v) for v in values)
    return string(key) + struct.pack("<IIQ", ARRAY, kind, len(values)) + body


def tokenizer_pairs(folder, config):
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        tok = json.load(f)
    tokens = {i: t for t, i in tok["model"]["vocab"].items()}
    special = {t["id"]: t["content"] for t in tok["added_tokens"]}
    tokens.update(special)
    ids = range(len(tokens))
    merges = [m if isinstance(m, str) else " ".join(m) for m in tok["model"]["merges"]]
    return [
        pair("tokenizer.ggml.model", STRING, "gpt2"),
        pair("tokenizer.ggml.pre", STRING, "llama-bpe"),
        array("tokenizer.ggml.tokens", STRING, [tokens[i] for i in ids]),
        array("tokenizer.ggml.token_type", I32, [3 if i in special else 1 for i in ids]),
        array("tokenizer.ggml.merges", STRING, merges),
        pair("tokenizer.ggml.bos_token_id", U32, config["bos_token_id"]),
        pair("tokenizer.ggml.eos_token_id", U32, config["eos_token_id"]),
        pair("tokenizer.ggml.add_bos_token", BOOL, 1),
    ]


def metadata_pairs(folder, config, head_dim):
    return [
        pair("general.architecture", STRING, "llama"),
        pair("general.name", STRING, os.path.basename(folder.rstrip("/"))),
        pair("llama.block_count", U32, config["num_hidden_layers"]),
        pair("llama.context_length", U32, config["max_position_embeddings"]),
        pair("llama.embedding_length", U32, config["hidden_size"]),
        pair("llama.feed_forward_length", U32, config["intermediate_size"]),
        pair("llama.attention.head_count", U32, config["num_attention_heads"]),
        pair("llama.attention.head_count_kv", U32, config["num_key_value_heads"]),
        pair("llama.attention.layer_norm_rms_epsilon", F32, config["rms_norm_eps"]),
        pair("llama.rope.dimension_count", U32, head_dim),
        pair("llama.rope.freq_base", F32, config["rope_theta"]),
    ] + tokenizer_pairs(folder, config)


def gguf_name(name):
    fixed = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight",
             "lm_head.weight": "output.weight"}
    if name in fixed:
        return fixed[name]
    roles = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
             "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down"}
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{roles[rest.rsplit('.', 1)[0]]}.weight"


def main(folder, out):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    tensors = []
    for name, (dtype, shape, raw) in sorted(read_safetensors(os.path.join(folder, "model.safetensors")).items()):
        if ".q_proj." in name:
            raw = interleave_rows(raw, shape[0], config["num_attention_heads"])
        elif ".k_proj." in name:
            raw = interleave_rows(raw, shape[0], config["num_key_value_heads"])
        if len(shape) == 1:
            dtype, raw = "F32", to_f32(dtype, raw)
        tensors.append((gguf_name(name), KIND[dtype], shape, raw))
    if config.get("rope_scaling"):
        tensors.append(("rope_freqs.weight", KIND["F32"], [head_dim // 2], rope_factors(config, head_dim)))

    pairs = metadata_pairs(folder, config, head_dim)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs)
    data = b""
    for name, kind, shape, raw in tensors:
        head += string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        head += struct.pack("<IQ", kind, len(data))
        data += raw + b"\0" * (-len(raw) % ALIGNMENT)
    with open(out, "wb") as f:
        f.write(head + b"\0" * (-len(head) % ALIGNMENT) + data)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
