#!/usr/bin/env python3
"""Embeddings of a running twilld beside transformers' hidden states of the same GGUF file, and the speed of both.

usage: compare_embeddings.py URL MODEL.gguf [--speed]     (torch 2.13.0, transformers 4.57.6, gguf 0.19.0)

twilld should run with model.compute=f32 and kv.type=f32. Prints the largest difference between vectors of length 1, for the last
token and for the mean; with --speed how many short texts each embeds in a second.
"""

import argparse
import json
import pathlib
import time
import urllib.request

import torch
from transformers import AutoModelForCausalLM

TEXTS = ["The cat sat on the mat.", "Interest rates rose again in March, by a quarter of a point.", "Größe, 漢字 and 🙂",
         "def f(x):\n    return x + 1\n", " ".join(f"{n} bottles of beer on the wall." for n in range(60))]
SHORT = [f"Sentence number {n} is about subject {n % 17} and not much longer." for n in range(256)]


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=600))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--speed", action="store_true")
    args = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(args.model.parent, gguf_file=args.model.name, dtype=torch.float32).eval()

    def states(ids):
        with torch.no_grad():
            return model.base_model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0]

    ids = [post(args.url, "/tokenize", {"prompt": text})["tokens"] for text in TEXTS]
    for pooling in ("last", "mean"):
        reply = post(args.url, "/v1/embeddings", {"input": ids, "pooling": pooling})
        worst = 0.0
        for one, tokens in zip(reply["data"], ids):
            wanted = states(tokens).double()
            wanted = wanted[-1] if pooling == "last" else wanted.mean(dim=0)
            wanted = wanted / wanted.norm()
            worst = max(worst, (torch.tensor(one["embedding"], dtype=torch.float64) - wanted).abs().max().item())
        print(f"{pooling}: largest difference {worst:.1e} over {len(ids)} texts of {min(map(len, ids))} to "
              f"{max(map(len, ids))} tokens")
    if not args.speed:
        return
    ids = [post(args.url, "/tokenize", {"prompt": text})["tokens"] for text in SHORT]
    began = time.monotonic()
    post(args.url, "/v1/embeddings", {"input": SHORT, "encoding_format": "base64", "cache_salt": str(began)})
    ours = time.monotonic() - began
    began = time.monotonic()
    width = max(map(len, ids))
    for at in range(0, len(ids), 32):
        rows = ids[at:at + 32]
        padded = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
        with torch.no_grad():
            model.base_model(input_ids=padded, attention_mask=mask, use_cache=False)
    theirs = time.monotonic() - began
    tokens = sum(map(len, ids))
    print(f"{len(ids)} texts of {tokens / len(ids):.1f} tokens: twilld {len(ids) / ours:.0f} a second, transformers in "
          f"batches of 32 {len(ids) / theirs:.0f} a second")


if __name__ == "__main__":
    main()
