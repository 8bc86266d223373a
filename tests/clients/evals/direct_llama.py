"""A plain forward pass of a Llama checkpoint in f32, with numpy alone: what a server's scores are held against."""

import json
import pathlib

import numpy as np


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, tensor in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        kind = {"F16": np.float16, "F32": np.float32}[tensor["dtype"]]
        begin, end = tensor["data_offsets"]
        tensors[name] = np.frombuffer(data[8 + size + begin:8 + size + end], kind).reshape(tensor["shape"]).astype("f4")
    return tensors


class DirectLlama:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = read_safetensors(folder / "model.safetensors")

    def logits(self, ids):
        """(n_ids, vocab) f32: row t is about the token behind ids[t]."""
        c, w = self.config, self.weights
        heads, kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        width = c["hidden_size"] // heads
        n = len(ids)
        angles = np.outer(np.arange(n), c["rope_theta"] ** (-np.arange(0, width, 2) / width))
        cos, sin = (np.concatenate([f(angles)] * 2, -1).astype("f4")[:, None] for f in (np.cos, np.sin))
        unseen = np.triu(np.full((n, n), -np.inf, "f4"), 1)

        def norm(x, name):
            return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(c["rms_norm_eps"])) * w[name + ".weight"]

        def rotate(x):
            return x * cos + np.concatenate([-x[..., width // 2:], x[..., :width // 2]], -1) * sin

        x = w["model.embed_tokens.weight"][ids]
        for i in range(c["num_hidden_layers"]):
            at = f"model.layers.{i}."

            def linear(y, name, at=at):
                return y @ w[at + name + ".weight"].T

            y = norm(x, at + "input_layernorm")
            q = rotate(linear(y, "self_attn.q_proj").reshape(n, heads, width))
            k = rotate(linear(y, "self_attn.k_proj").reshape(n, kv_heads, width)).repeat(heads // kv_heads, 1)
            v = linear(y, "self_attn.v_proj").reshape(n, kv_heads, width).repeat(heads // kv_heads, 1)
            scores = np.einsum("qhd,khd->hqk", q, k) / np.float32(np.sqrt(width)) + unseen
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            x = x + linear(np.einsum("hqk,khd->qhd", shares, v).reshape(n, -1), "self_attn.o_proj")
            y = norm(x, at + "post_attention_layernorm")
            gate = linear(y, "mlp.gate_proj")
            x = x + linear(gate / (1 + np.exp(-gate)) * linear(y, "mlp.up_proj"), "mlp.down_proj")
        return norm(x, "model.norm") @ w["lm_head.weight"].T

    def score(self, context, continuation):
        """The log-probability of the ids `continuation` behind the ids `context`."""
        rows = self.logits(context + continuation)[len(context) - 1:-1].astype("f8")
        rows -= rows.max(-1, keepdims=True)
        logs = rows - np.log(np.exp(rows).sum(-1, keepdims=True))
        return float(logs[np.arange(len(continuation)), continuation].sum())

    def greedy(self, ids, n, end_id):
        made = []
        for _ in range(n):
            made.append(int(self.logits(ids + made)[-1].argmax()))
            if made[-1] == end_id:
                return made[:-1]
        return made
