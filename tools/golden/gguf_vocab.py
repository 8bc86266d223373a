#!/usr/bin/env python3
"""Writes a small vocabulary as the metadata a GGUF file would hold, for tests of the BPE tokenizer.

usage: gguf_vocab.py FOLDER PRE OUT.json

FOLDER holds a Hugging Face tokenizer.json, or vocab.json and merges.txt; PRE is the value for
tokenizer.ggml.pre. Needs only the standard library.
"""
import json
import pathlib
import sys

NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5


def read_tokenizer_json(folder):
    data = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    added = {t["content"]: (t["id"], CONTROL if t["special"] else USER_DEFINED)
             for t in data["added_tokens"]}
    return data["model"]["vocab"], merges, added


def read_vocab_and_merges(folder):
    vocab = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")
    merges = [line for line in lines if line and not line.startswith("#version")]
    config = json.loads((folder / "special_tokens_map.json").read_text(encoding="utf-8"))
    texts = {v["content"] if isinstance(v, dict) else v for v in config.values()}
    return vocab, merges, {text: (vocab[text], CONTROL) for text in texts}


def main():
    folder, pre, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    read = read_tokenizer_json if (folder / "tokenizer.json").exists() else read_vocab_and_merges
    vocab, merges, added = read(folder)
    size = 1 + max(max(vocab.values()), *(i for i, _ in added.values()))
    tokens, types = [f"[PAD{i}]" for i in range(size)], [UNUSED] * size
    for text, i in vocab.items():
        tokens[i], types[i] = text, NORMAL
    for text, (i, kind) in added.items():
        tokens[i], types[i] = text, kind
    result = {"model": "gpt2", "pre": pre, "tokens": tokens, "token_type": types, "merges": merges}
    for key, names in (("bos_token_id", ["<|begin_of_text|>", "</s>"]),
                       ("eos_token_id", ["<|end_of_text|>", "<|endoftext|>", "</s>"])):
        for name in names:
            if name in added:
                result.setdefault(key, added[name][0])
    out.write_text(json.dumps(result, ensure_ascii=False, separators=(",", ":")) + "\n",
                   encoding="utf-8")


main()
