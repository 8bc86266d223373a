"""Every family's golden folder served: all prompts at once, in small steps and little KV, give the golden
tokens; chat templates and tokenizers answer where the folder has them."""

import json
import pathlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import Daemon

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
FOLDERS = sorted(p.parent for p in GOLDEN.glob("*/golden.json") if (p.parent / "config.json").exists())
# Families that have a chat template, in the folder or by convention.
CHATS = ("baichuan", "chatglm", "mistral", "qwen")


def served(folder, *settings):
    return Daemon("model.compute=f32", "kv.type=f32", *settings, model=str(folder))


def kv_bytes_per_token(folder):
    config = json.loads((folder / "config.json").read_text())
    layers = config.get("num_hidden_layers") or config["num_layers"]
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or config.get("multi_query_group_num") or heads
    return 2 * layers * kv_heads * config["hidden_size"] // heads * 4


def test_there_are_folders():
    assert len(FOLDERS) >= 16


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_all_prompts_at_once_give_the_golden_tokens(folder):
    prompts = json.loads((folder / "golden.json").read_text())["prompts"]
    # Chunks of 24 tokens, and KV for little more than the longest request, so that sequences are preempted.
    longest = max(len(case["ids"]) + len(case["greedy_ids"]) for case in prompts)
    kv = (longest // 8 + 6) * 8 * kv_bytes_per_token(folder)
    daemon = served(folder, "scheduler.max_step_tokens=24", "kv.block_tokens=8", f"kv.memory={kv}")
    try:

        def ask(case):
            reply = daemon.complete(case["ids"], max_tokens=len(case["greedy_ids"]), ignore_eos=True,
                                    repetition_penalty=1, return_token_ids=True)
            return reply["choices"][0]["token_ids"]

        with ThreadPoolExecutor(len(prompts)) as pool:
            answers = list(pool.map(ask, prompts * 2))
        assert answers == [case["greedy_ids"] for case in prompts] * 2
        assert daemon.metric("twill_num_preemptions_total") > 0
        text = next((case for case in prompts if case.get("text")), None)
        if text:
            status, tokens = daemon.post("/tokenize", {"prompt": text["text"]})
            assert status == 200 and tokens["tokens"] == text["ids"]
    finally:
        daemon.stop()


@pytest.mark.parametrize("folder", [f for f in FOLDERS if f.name.startswith(CHATS)], ids=lambda f: f.name)
def test_chat_follows_the_family_s_convention(folder):
    daemon = served(folder)
    try:
        status, reply = daemon.post("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "Hello there"}], "max_tokens": 8, "temperature": 0})
        assert status == 200, reply
        assert reply["usage"]["completion_tokens"] >= 1
    finally:
        daemon.stop()


def test_a_family_without_a_convention_refuses_chat_by_name():
    daemon = served(GOLDEN / "opt-tiny-fp32")
    try:
        status, reply = daemon.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})
        assert status == 400 and "template" in reply["error"]["message"]
    finally:
        daemon.stop()
