#!/usr/bin/env python3
"""The final hidden states of prompts of golden folders, as transformers computes them in double precision.

usage: hidden_states.py GOLDEN_DIR [NAME...]     (torch 2.13.0, transformers 4.57.6, safetensors)

Writes golden.hidden.safetensors into each named folder (by default all that transformers can open): for prompt i of its golden.json
`p{i}.last`, the last entry of the base model's last_hidden_state, and `p{i}.mean`, the mean over all tokens, both in float32.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

NAMES = ("llama-tiny-fp16", "llama3-style-tied-bf16", "mistral-tiny-bf16", "mistral-swa-tiny-bf16", "opt-tiny-fp32",
         "opt-350m-style-fp16", "variants/llama-dynamic", "variants/llama-wide-heads", "variants/opt-post-norm",
         "variants/opt-no-final-norm", "variants/qwen2-tied", "variants/qwen2-windows", "variants/qwen3")


def write(folder: pathlib.Path):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager").eval()
    tensors = {}
    for i, prompt in enumerate(json.loads((folder / "golden.json").read_text())["prompts"]):
        with torch.no_grad():
            states = model.base_model(input_ids=torch.tensor([prompt["ids"]]), use_cache=False).last_hidden_state[0]
            logits = model.lm_head(states[-1])
        assert int(logits.argmax()) == prompt["greedy_ids"][0], f"{folder} prompt {i}: the golden token differs"
        tensors[f"p{i}.last"] = states[-1].float().contiguous()
        tensors[f"p{i}.mean"] = states.mean(dim=0).float().contiguous()
    save_file(tensors, folder / "golden.hidden.safetensors")
    print(folder, len(tensors) // 2, "prompts of", states.shape[-1], "numbers")


if __name__ == "__main__":
    for name in sys.argv[2:] or NAMES:
        write(pathlib.Path(sys.argv[1]) / name)
