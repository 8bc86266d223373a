#!/usr/bin/env python3
"""Writes which chat templates transformers takes from a folder's files, by name.

usage: chat_template_files.py OUT.json          (needs transformers 4.57)

Each case is a set of files in a tokenizer's folder. `loaded` are the templates that AutoTokenizer read from them, and `chosen` the
templates that get_chat_template() returns without tools, with tools, and for the name "rag"; null where it raises an exception.
"""
import json
import pathlib
import sys
import tempfile

import transformers
from tokenizers import Tokenizer, models

LIST = [{"name": "default", "template": "list default"}, {"name": "tool_use", "template": "list tools"},
        {"name": "rag", "template": "list rag"}]
CASES = {
    "a text": {"tokenizer_config.json": {"chat_template": "text"}},
    "a list": {"tokenizer_config.json": {"chat_template": LIST}},
    "a list with one name twice": {"tokenizer_config.json": {"chat_template": [
        *LIST, {"name": "tool_use", "template": "later tools"}]}},
    "a list without tool_use": {"tokenizer_config.json": {"chat_template": [LIST[0], LIST[2]]}},
    "a list without default": {"tokenizer_config.json": {"chat_template": LIST[1:]}},
    "a file": {"chat_template.jinja": "file"},
    "a file above a text": {"chat_template.jinja": "file", "tokenizer_config.json": {"chat_template": "text"}},
    "a file above a list": {"chat_template.jinja": "file", "tokenizer_config.json": {"chat_template": LIST}},
    "a file and a folder": {"chat_template.jinja": "file", "additional_chat_templates/tool_use.jinja": "more tools",
                            "additional_chat_templates/rag.jinja": "more rag"},
    "a file and a folder above a list": {"chat_template.jinja": "file",
                                         "additional_chat_templates/tool_use.jinja": "more tools",
                                         "tokenizer_config.json": {"chat_template": LIST}},
    "a folder without a default": {"additional_chat_templates/tool_use.jinja": "more tools",
                                   "additional_chat_templates/rag.jinja": "more rag"},
    "a file and a folder with other files": {"chat_template.jinja": "file",
                                             "additional_chat_templates/readme.txt": "no template",
                                             "additional_chat_templates/tool_use.jinja": "more tools"},
}


def choose(tokenizer, **arguments):
    try:
        return tokenizer.get_chat_template(**arguments)
    except ValueError:
        return None


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        Tokenizer(models.WordLevel({"a": 0, "<unk>": 1}, unk_token="<unk>")).save(str(root / "tokenizer.json"))
        config = {"tokenizer_class": "PreTrainedTokenizerFast", **files.get("tokenizer_config.json", {})}
        (root / "tokenizer_config.json").write_text(json.dumps(config))
        for name, content in files.items():
            if name != "tokenizer_config.json":
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(content)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    loaded = tokenizer.chat_template
    loaded = {"default": loaded} if isinstance(loaded, str) else loaded
    return {"files": files, "loaded": loaded,
            "chosen": {"plain": choose(tokenizer), "tools": choose(tokenizer, tools=[{}]),
                       "rag": loaded.get("rag")}}


def main():
    out = {"transformers": transformers.__version__,
           "cases": [{"name": name, **run(files)} for name, files in CASES.items()]}
    pathlib.Path(sys.argv[1]).write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n")


main()
