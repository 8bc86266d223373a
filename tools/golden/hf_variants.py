#!/usr/bin/env python3
"""Tiny random models in many variants of the Llama, Mistral, Qwen2, Qwen3 and OPT families, with the
logits and greedy tokens that transformers computes from them in double precision.

usage: hf_variants.py OUT_DIR     (torch 2.13.0, transformers 4.57.6, safetensors)

One folder per variant: config.json, model.safetensors, golden.json and golden.safetensors in the form of
the other golden folders. Weights are random from a fixed seed, scaled so that logits spread.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import (LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, OPTConfig,
                          OPTForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM)

LENGTHS = (3, 17, 50)
N_NEW = 12

BASE = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=128, bos_token_id=1, eos_token_id=2,
            pad_token_id=0, tie_word_embeddings=False)
OPT = dict(vocab_size=96, hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4,
           max_position_embeddings=128, word_embed_proj_dim=32, dropout=0.0)


def llama(**changes):
    return LlamaForCausalLM, LlamaConfig(**{**BASE, **changes})


def opt(**changes):
    return OPTForCausalLM, OPTConfig(**{**OPT, **changes})


VARIANTS = {
    "llama-linear": llama(rope_scaling={"rope_type": "linear", "factor": 4.0}, max_position_embeddings=32),
    "llama-dynamic": llama(rope_scaling={"rope_type": "dynamic", "factor": 2.0}, max_position_embeddings=32),
    "llama-llama3": llama(rope_theta=500000.0, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}),
    "llama-yarn": llama(rope_scaling={"rope_type": "yarn", "factor": 4.0,
                                      "original_max_position_embeddings": 32}, head_dim=16),
    "llama-yarn-mscale": llama(rope_scaling={
        "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16, "beta_fast": 8,
        "beta_slow": 2, "mscale": 0.8, "mscale_all_dim": 0.5, "truncate": False}, head_dim=32),
    "llama-yarn-factor": llama(rope_scaling={
        "rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 64,
        "attention_factor": 1.3}),
    "llama-biases": llama(attention_bias=True, mlp_bias=True),
    "llama-wide-heads": llama(head_dim=24, num_attention_heads=6, num_key_value_heads=3),
    "llama-one-kv-head": llama(head_dim=40, num_attention_heads=5, num_key_value_heads=1,
                               tie_word_embeddings=True),
    "mistral-window": (MistralForCausalLM, MistralConfig(**{**BASE, "sliding_window": 7, "head_dim": 20})),
    "mistral-no-window": (MistralForCausalLM, MistralConfig(**{**BASE, "sliding_window": None})),
    "qwen2-tied": (Qwen2ForCausalLM, Qwen2Config(**{**BASE, "tie_word_embeddings": True})),
    "qwen2-windows": (Qwen2ForCausalLM, Qwen2Config(**{
        **BASE, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1})),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(**{**BASE, "head_dim": 16})),
    "qwen3-biases": (Qwen3ForCausalLM, Qwen3Config(**{
        **BASE, "head_dim": 48, "num_key_value_heads": 4, "attention_bias": True})),
    "opt-post-norm": opt(do_layer_norm_before=False, word_embed_proj_dim=16),
    "opt-gelu-no-bias": opt(activation_function="gelu", enable_bias=False),
    "opt-no-final-norm": opt(_remove_final_layer_norm=True, num_attention_heads=2),
}


def randomise(model, seed):
    """Draws every tensor from one seed: matrices scaled by 1 / sqrt(fan in), norms near 1, biases and heads larger."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            noise = torch.randn(tensor.shape, generator=random)
            if tensor.dim() == 1:
                tensor.copy_(1 + 0.2 * noise if "norm" in name and name.endswith("weight") else 0.2 * noise)
            elif "embed" in name:
                tensor.copy_(noise)
            else:
                tensor.copy_(noise * (3.0 if "lm_head" in name else 1.2) / tensor.shape[1] ** 0.5)
            tensor.copy_(tensor.to(torch.bfloat16))  # so that the computation uses the values that are stored


def greedy(model, ids):
    """Prompt logits, then N_NEW greedy tokens with a KV cache, as a server would."""
    out = model(torch.tensor([ids]), use_cache=True)
    prompt_logits, cache = out.logits[0], out.past_key_values
    logits, new = prompt_logits[-1], []
    for _ in range(N_NEW):
        new.append(int(logits.argmax()))
        out = model(torch.tensor([[new[-1]]]), past_key_values=cache, use_cache=True)
        logits, cache = out.logits[0, -1], out.past_key_values
    return prompt_logits, new, logits


def write(folder, kind, config, seed):
    config._attn_implementation = "eager"
    model = kind(config).eval()
    randomise(model, seed)
    folder.mkdir(parents=True, exist_ok=True)
    names = {name for name, _ in model.named_parameters()}
    save_file({name: tensor.detach().to(torch.bfloat16).contiguous()
               for name, tensor in model.named_parameters()}, folder / "model.safetensors")
    assert "lm_head.weight" not in names or not config.tie_word_embeddings
    saved = config.to_dict()
    saved["architectures"] = [kind.__name__]
    (folder / "config.json").write_text(json.dumps(saved, indent=1, default=str) + "\n")

    model = model.double()
    random = torch.Generator().manual_seed(seed + 1)
    prompts, tensors = [], {}
    with torch.no_grad():
        for i, length in enumerate(LENGTHS):
            ids = torch.randint(3, config.vocab_size, (length,), generator=random).tolist()
            prompt_logits, new, final = greedy(model, ids)
            top = prompt_logits.topk(5)
            prompts.append({"ids": ids, "greedy_ids": new, "top5_ids": top.indices.tolist(),
                            "top5_logits": [[round(x, 6) for x in row] for row in top.values.tolist()]})
            tensors[f"p{i}.prompt_last_logits"] = prompt_logits[-1].float().contiguous()
            tensors[f"p{i}.final_logits"] = final.float().contiguous()
    save_file(tensors, folder / "golden.safetensors")
    golden = {"tolerance": {"float32_compute_logit_abs": 0.002}, "prompts": prompts}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")


def main():
    out = pathlib.Path(sys.argv[1])
    for seed, (name, (kind, config)) in enumerate(VARIANTS.items()):
        write(out / name, kind, config, 100 * seed)
        print(name)


if __name__ == "__main__":
    main()
