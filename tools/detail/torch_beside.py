#!/usr/bin/env python3
"""Times PyTorch at the shape of a model folder, for gpu-report: what twill's figures stand beside.

    torch_beside.py --model FOLDER [--at-once N] [--input-len N] [--output-len N] [--runs N]
    torch_beside.py --products

The decoder here has the folder's sizes and random 16-bit weights (32-bit on a processor), whatever the folder's are quantised to;
it runs eagerly, with PyTorch's own attention over a KV cache of its own, and has no rotary embedding, which costs next to nothing.
--products times 16-bit matrix products and a copy. Exit status 3 where PyTorch cannot be imported.
"""

import argparse
import collections
import json
import pathlib
import sys
import time

Shape = collections.namedtuple("Shape", "hidden layers heads kv_heads head_dim mlp vocab gated")


def shape_of(config: dict) -> Shape:
    """The sizes that a config.json states, by the names of each family."""
    def first(*names):
        return next((config[name] for name in names if config.get(name) is not None), None)

    hidden, heads = config["hidden_size"], first("num_attention_heads")
    mlp = first("ffn_hidden_size", "ffn_dim", "intermediate_size")
    if config.get("model_type") == "qwen":
        mlp //= 2  # which counts gate and up together
    kv_heads = config.get("multi_query_group_num") if config.get("multi_query_attention") else config.get("num_key_value_heads")
    return Shape(hidden, first("num_layers", "num_hidden_layers"), heads, kv_heads or heads,
                 first("kv_channels", "head_dim") or hidden // heads, mlp, first("padded_vocab_size", "vocab_size"),
                 config.get("model_type") != "opt")


def decoder_of(torch, shape: Shape, at_once: int, length: int, device: str, dtype):
    """step(hidden (at_once, n, hidden), position) -> logits of each sequence's last row."""
    functional = torch.nn.functional

    def matrix(rows, cols):
        return torch.randn(rows, cols, device=device, dtype=dtype) / cols**0.5

    kv = shape.kv_heads * shape.head_dim
    layers = [{"qkv": matrix(shape.heads * shape.head_dim + 2 * kv, shape.hidden), "o": matrix(shape.hidden, shape.heads * shape.head_dim),
               "up": matrix((2 if shape.gated else 1) * shape.mlp, shape.hidden), "down": matrix(shape.hidden, shape.mlp),
               "cache": torch.zeros(2, at_once, shape.kv_heads, length, shape.head_dim, device=device, dtype=dtype)}
              for _ in range(shape.layers)]
    head = matrix(shape.vocab, shape.hidden)

    def norm(x):
        return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5).to(x.dtype)

    def heads_of(x, n):
        return x.view(at_once, -1, n, shape.head_dim).transpose(1, 2)

    def step(x, position):
        n = x.shape[1]
        for layer in layers:
            q, k, v = functional.linear(norm(x), layer["qkv"]).split([shape.heads * shape.head_dim, kv, kv], -1)
            for side, values in enumerate((k, v)):
                layer["cache"][side, :, :, position:position + n] = heads_of(values, shape.kv_heads)
            keys, values = (layer["cache"][side, :, :, :position + n].repeat_interleave(shape.heads // shape.kv_heads, 1)
                            for side in (0, 1))
            attended = functional.scaled_dot_product_attention(heads_of(q, shape.heads), keys, values, is_causal=n > 1)
            x = x + functional.linear(attended.transpose(1, 2).reshape(at_once, n, -1), layer["o"])
            up = functional.linear(norm(x), layer["up"])
            if shape.gated:
                gate, up = up.chunk(2, -1)
                up = functional.silu(gate) * up
            else:
                up = functional.relu(up)
            x = x + functional.linear(up, layer["down"])
        return functional.linear(norm(x[:, -1]), head)

    return step, head


def time_model(torch, given, device: str, dtype) -> None:
    shape = shape_of(json.loads((given.model / "config.json").read_text()))
    step, head = decoder_of(torch, shape, given.at_once, given.input_len + given.output_len, device, dtype)

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    for _ in range(given.runs):
        wait()
        begin = time.monotonic()
        prompt = head[torch.randint(0, shape.vocab, (given.at_once, given.input_len), device=device)]
        tokens = step(prompt, 0).argmax(-1)
        wait()
        between = time.monotonic()
        for position in range(given.input_len, given.input_len + given.output_len - 1):
            tokens = step(head[tokens][:, None], position).argmax(-1)
        wait()
        end = time.monotonic()
        print(f"prefill {given.at_once * given.input_len / (between - begin):8.1f} tokens/s  "
              f"decode {given.at_once * (given.output_len - 1) / (end - between):8.1f} tokens/s", flush=True)


def time_products(torch, device: str, dtype) -> None:
    def seconds(f, runs=20):
        f()
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.monotonic()
        for _ in range(runs):
            f()
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.monotonic() - begin) / runs

    size = 1 << (30 if device == "cuda" else 26)
    memory = torch.zeros(size, dtype=torch.uint8, device=device)
    print(f"copy of {size >> 20} MiB: {2 * size / seconds(lambda: memory.clone()) / 1e9:.1f} GB/s")
    for rows, cols in ((4096, 4096), (28672, 4096), (4096, 14336), (15360, 5120), (27392, 5120), (5120, 13696)):
        weights = torch.randn(rows, cols, dtype=dtype, device=device)
        for m in (1, 4, 16, 256):
            x = torch.randn(m, cols, dtype=dtype, device=device)
            taken = seconds(lambda: torch.nn.functional.linear(x, weights), 20 if device == "cuda" else 2)
            print(f"linear {m} x {rows} x {cols}: {taken * 1e6:.1f} us, {2e-12 * m * rows * cols / taken:.2f} Tflop/s, "
                  f"{weights.element_size() * rows * cols / taken / 1e9:.1f} GB/s of weights")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--model", type=pathlib.Path)
    what.add_argument("--products", action="store_true")
    for name, default in (("--at-once", 1), ("--input-len", 128), ("--output-len", 128), ("--runs", 3)):
        parser.add_argument(name, type=int, default=default)
    given = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch cannot be imported: {error}")
        return 3
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.float16 if device == "cuda" else torch.float32
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name() if device == 'cuda' else 'the processor'}")
    with torch.no_grad():
        time_products(torch, device, dtype) if given.products else time_model(torch, given, device, dtype)
    return 0


if __name__ == "__main__":
    sys.exit(main())
