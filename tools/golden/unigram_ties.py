#!/usr/bin/env python3
"""Encodes short texts with Unigram vocabularies of many equal scores, by the tokenizers library.

usage: unigram_ties.py OUT.json          (needs tokenizers)

Scores are multiples of a half, so that sums are exact and most texts have several best
segmentations; the file records which of them the library chooses. Token 0 is the unknown token.
"""
import json
import random
import sys

import tokenizers
from tokenizers import Tokenizer, models


def vocabulary(rng):
    pieces = {"<unk>": 0.0}
    for _ in range(rng.randint(2, 12)):
        text = "".join(rng.choice("abé") for _ in range(rng.randint(1, 4)))
        pieces.setdefault(text, rng.choice([-1.0, -2.0, -0.5 * rng.randint(1, 8), -1.0 * len(text)]))
    return list(pieces.items())


def main():
    rng = random.Random(1)
    groups = []
    for _ in range(80):
        pieces = vocabulary(rng)
        encoder = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
        texts = {"".join(rng.choice("aabbéx") for _ in range(rng.randint(1, 9))) for _ in range(12)}
        groups.append({"pieces": [list(piece) for piece in pieces],
                       "cases": [[text, encoder.encode(text).ids] for text in sorted(texts)]})
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        lines = ",\n".join(json.dumps(group, ensure_ascii=False, separators=(",", ":")) for group in groups)
        out.write(f'{{"tokenizers": "{tokenizers.__version__}", "groups": [\n{lines}\n]}}\n')


main()
