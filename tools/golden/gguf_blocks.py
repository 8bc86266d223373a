#!/usr/bin/env python3
"""Random quantised GGUF blocks and their values, decoded by the `gguf` package.

Needs: pip install gguf numpy safetensors. Writes tests/golden/gguf_blocks.safetensors with
`KIND.blocks` (bytes of whole blocks) and `KIND.values` (f32).
"""

import pathlib

import numpy as np
from gguf import GGMLQuantizationType, GGML_QUANT_SIZES
from gguf.quants import dequantize
from safetensors.numpy import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent.parent / "tests/golden/gguf_blocks.safetensors"
# kind -> byte offsets of the f16 fields of a block
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82],
          "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
BLOCKS = 4

random = np.random.default_rng(7)
tensors = {}
for kind, halves in HALVES.items():
    values, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    blocks = random.integers(0, 256, (BLOCKS, size), dtype=np.uint8)
    for at in halves:  # each f16 field gets a finite value of either sign
        blocks[:, at:at + 2] = random.normal(0, 0.02, (BLOCKS, 1)).astype(np.float16).view(np.uint8)
    tensors[f"{kind}.blocks"] = blocks
    tensors[f"{kind}.values"] = dequantize(blocks, GGMLQuantizationType[kind]).astype(np.float32)
    assert tensors[f"{kind}.values"].size == BLOCKS * values
save_file(tensors, OUT)
print(f"{OUT}: {OUT.stat().st_size} bytes")
