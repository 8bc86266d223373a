#!/usr/bin/env python3
"""Times PyTorch for gpu-check: the ceilings of the device, and a decoder of given sizes that twill's figures stand beside.

    torch_beside.py --device cuda|cpu --ceilings
    torch_beside.py --device cuda|cpu --shape HIDDEN,LAYERS,HEADS,KV_HEADS,MLP,VOCAB,GATED ... [--at-once N ...]
                    [--input-len N] [--output-len N] [--runs N]

Each figure is a line of JSON. --ceilings copies memory and multiplies square matrices of random 16-bit numbers; a figure is the
median of 20. The decoder has random 16-bit weights (32-bit on a processor), whatever twill's are quantised to; it runs eagerly,
with PyTorch's own attention over a KV cache of its own, and has no rotary embedding, which costs next to nothing. GATED is 1 for
an MLP with a gate. Exit status 3 where PyTorch cannot be imported, 1 where it does not see the device.
"""

import argparse
import collections
import json
import statistics
import sys
import time

RUNS, WARM_SECONDS = 20, 0.3
Shape = collections.namedtuple("Shape", "hidden layers heads kv_heads mlp vocab gated")


def shape_of(text: str) -> Shape:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) != len(Shape._fields):
        raise argparse.ArgumentTypeError(f"--shape must be {len(Shape._fields)} integers with commas between them, got {text}")
    return Shape(*numbers)


def say(**figures) -> None:
    print(json.dumps(figures), flush=True)


def seconds_of(torch, device: str, f) -> float:
    """The median of 20 runs: by events on a GPU, after it has worked for long enough to raise its clocks; else by the clock."""
    def timed():
        if device != "cuda":
            begin = time.perf_counter()
            f()
            return time.perf_counter() - begin
        before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before.record()
        f()
        after.record()
        after.synchronize()
        return before.elapsed_time(after) / 1e3

    end = time.perf_counter() + (WARM_SECONDS if device == "cuda" else 0)
    timed()
    while time.perf_counter() < end:
        timed()
    return statistics.median(timed() for _ in range(RUNS))


def time_ceilings(torch, device: str) -> None:
    size = (1 << 30) if device == "cuda" else (1 << 26)
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    taken = seconds_of(torch, device, lambda: target.copy_(source))
    say(name="copy", unit="GB/s", rate=round(2 * size / taken / 1e9, 1), us=round(taken * 1e6, 1), bytes=2 * size)
    n = 8192 if device == "cuda" else 512
    for dtype in ("bfloat16", "float16"):
        a, b = (torch.randn(n, n, device=device).to(getattr(torch, dtype)) for _ in range(2))
        product = torch.empty_like(a)
        taken = seconds_of(torch, device, lambda a=a, b=b, product=product: torch.matmul(a, b, out=product))
        say(name=f"{dtype} product of {n}^3", unit="Tflop/s", rate=round(2 * n**3 / taken / 1e12, 3), us=round(taken * 1e6, 1))


def decoder_of(torch, shape: Shape, at_once: int, length: int, device: str, dtype):
    """step(hidden (at_once, n, hidden), position) -> logits of each sequence's last row."""
    functional = torch.nn.functional
    head_dim = shape.hidden // shape.heads
    kv = shape.kv_heads * head_dim

    def matrix(rows, cols):
        return torch.randn(rows, cols, device=device, dtype=dtype) / cols**0.5

    layers = [{"qkv": matrix(shape.hidden + 2 * kv, shape.hidden), "o": matrix(shape.hidden, shape.hidden),
               "up": matrix((2 if shape.gated else 1) * shape.mlp, shape.hidden), "down": matrix(shape.hidden, shape.mlp),
               "cache": torch.zeros(2, at_once, shape.kv_heads, length, head_dim, device=device, dtype=dtype)}
              for _ in range(shape.layers)]
    head = matrix(shape.vocab, shape.hidden)

    def norm(x):
        return x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-5).to(x.dtype)

    def heads_of(x, n):
        return x.view(at_once, -1, n, head_dim).transpose(1, 2)

    def step(x, position):
        n = x.shape[1]
        for layer in layers:
            q, k, v = functional.linear(norm(x), layer["qkv"]).split([shape.hidden, kv, kv], -1)
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


def time_decoder(torch, shape: Shape, at_once: int, given) -> None:
    device = given.device
    dtype = torch.float16 if device == "cuda" else torch.float32
    step, head = decoder_of(torch, shape, at_once, given.input_len + given.output_len, device, dtype)

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    for _ in range(given.runs):
        wait()
        begin = time.perf_counter()
        prompt = head[torch.randint(0, shape.vocab, (at_once, given.input_len), device=device)]
        tokens = step(prompt, 0).argmax(-1)
        wait()
        between = time.perf_counter()
        for position in range(given.input_len, given.input_len + given.output_len - 1):
            tokens = step(head[tokens][:, None], position).argmax(-1)
        wait()
        end = time.perf_counter()
        say(shape=list(shape), at_once=at_once,
            output_tokens_per_s=round(at_once * given.output_len / (end - begin), 1),
            prefill_tokens_per_s=round(at_once * given.input_len / (between - begin), 1),
            decode_tokens_per_s=round(at_once * (given.output_len - 1) / (end - between), 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--ceilings", action="store_true")
    what.add_argument("--shape", type=shape_of, nargs="+")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1])
    for name, default in (("--input-len", 128), ("--output-len", 128), ("--runs", 3)):
        parser.add_argument(name, type=int, default=default)
    given = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch cannot be imported: {error}")
        return 3
    if given.device == "cuda" and not torch.cuda.is_available():
        print("PyTorch sees no CUDA device")
        return 1
    say(torch=torch.__version__, device=torch.cuda.get_device_name() if given.device == "cuda" else "cpu")
    with torch.no_grad():
        if given.ceilings:
            time_ceilings(torch, given.device)
        else:
            for shape in given.shape:
                for at_once in given.at_once:
                    time_decoder(torch, shape, at_once, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
