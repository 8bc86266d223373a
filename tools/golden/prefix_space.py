#!/usr/bin/env python3
"""Writes tests/golden/tokenizers/prefix_space.json: where LlamaTokenizer puts a space in front.

The reference is transformers' LlamaTokenizer (4.57.6, with sentencepiece 0.2.3 and protobuf) on the
tokenizer.model of llama-spm, whose two rules about spaces are changed, under the flags of
tokenizer_config.json. With `legacy` and without `add_prefix_space` it is LlamaTokenizerFast, since
the slow class ignores that flag there. The ids are those of the text alone, without BOS.

    prefix_space.py tests/golden/tokenizers/llama-spm/tokenizer.model tests/golden/tokenizers/prefix_space.json
"""

import itertools
import json
import pathlib
import sys
import tempfile

from sentencepiece import sentencepiece_model_pb2
from transformers import CodeLlamaTokenizer, LlamaTokenizer, LlamaTokenizerFast

TEXTS = ["Hello world", " Hello", "  two  spaces", "the end ", "\n\nnext", "</s>the", "</s> the", "a</s>the", "a </s> the</s>",
         "\u2581mark", "caf\u00e9 \u4f60\u597d", " ", "", "<s>the</s>the", "</s></s>x", "a\tb", "   "]


def main():
    proto = sentencepiece_model_pb2.ModelProto.FromString(pathlib.Path(sys.argv[1]).read_bytes())
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for dummy, extra, legacy, prefix in itertools.product([True, False], [False, True], [True, False], [None, True, False]):
            proto.normalizer_spec.add_dummy_prefix = dummy
            proto.normalizer_spec.remove_extra_whitespaces = extra
            path = pathlib.Path(folder) / "tokenizer.model"
            path.write_bytes(proto.SerializeToString())
            flags = {"legacy": legacy} | ({} if prefix is None else {"add_prefix_space": prefix})
            fast = legacy and prefix is False
            if fast and extra:
                continue  # the fast class removes no spaces
            tokenizer = (LlamaTokenizerFast if fast else LlamaTokenizer)(str(path), **flags)
            cases.append({"add_dummy_prefix": dummy, "remove_extra_whitespaces": extra, "flags": flags,
                          "ids": [tokenizer.encode(t, add_special_tokens=False) for t in TEXTS]})
            if legacy and prefix is None and not extra:
                tokenizer = CodeLlamaTokenizer(str(path))
                cases.append({"add_dummy_prefix": dummy, "remove_extra_whitespaces": extra,
                              "flags": {"tokenizer_class": "CodeLlamaTokenizer", "add_prefix_space": False},
                              "ids": [tokenizer.encode(t, add_special_tokens=False) for t in TEXTS]})
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(json.dumps({"texts": TEXTS, "cases": cases}, separators=(",", ":")).replace('{"add_d', '\n{"add_d') + "\n")


main()
