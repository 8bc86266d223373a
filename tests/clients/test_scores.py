"""Scores of given text: echo with logprobs, prompt_logprobs, and the rules about which tokens may be drawn."""

import json

import pytest

PROMPT = "The capital of France is Paris, and the capital of Italy is"


def tokens_of(daemon, text):
    status, reply = daemon.post("/tokenize", {"prompt": text})
    assert status == 200, reply
    return reply["tokens"]


def test_an_echoed_text_scores_as_it_was_generated(daemon):
    made = daemon.complete(PROMPT, max_tokens=12, ignore_eos=True, logprobs=2, return_token_ids=True)["choices"][0]
    ids = tokens_of(daemon, PROMPT)
    reply = daemon.complete(ids + made["token_ids"], max_tokens=0, echo=True, logprobs=2)
    scores = reply["choices"][0]["logprobs"]
    assert reply["usage"]["completion_tokens"] == 0
    assert reply["choices"][0]["text"] == PROMPT + made["text"]
    assert scores["token_logprobs"][0] is None and scores["top_logprobs"][0] is None
    assert scores["token_logprobs"][len(ids):] == pytest.approx(made["logprobs"]["token_logprobs"], abs=1e-4)
    assert "".join(scores["tokens"]) == PROMPT + made["text"]
    assert scores["text_offset"][1] == len(scores["tokens"][0])


def test_a_choice_scores_the_same_however_it_is_asked(daemon):
    """Scores as lm-eval's local-completions asks for them in a multiple-choice task equal scores that are computed token by token."""
    context = tokens_of(daemon, PROMPT)
    for choice in (" Rome", " Oslo", " Paris"):
        ids = tokens_of(daemon, PROMPT + choice)
        whole = daemon.complete(ids, max_tokens=1, echo=True, logprobs=1)["choices"][0]["logprobs"]
        asked = sum(whole["token_logprobs"][len(context):-1])
        alone = 0.0
        for at in range(len(context), len(ids)):
            step = daemon.complete(ids[:at], max_tokens=1, logprobs=0, allowed_token_ids=[ids[at]])
            alone += step["choices"][0]["logprobs"]["token_logprobs"][0]
        assert asked == pytest.approx(alone, abs=1e-4)


def test_prompt_logprobs_name_each_token(daemon):
    ids = tokens_of(daemon, PROMPT)
    scores = daemon.complete(PROMPT, max_tokens=1, prompt_logprobs=1)["choices"][0]["prompt_logprobs"]
    assert scores[0] is None and len(scores) == len(ids)
    assert all(str(one) in score for one, score in zip(ids[1:], scores[1:]))
    kept = daemon.complete(PROMPT, max_tokens=1, truncate_prompt_tokens=3)
    assert kept["usage"]["prompt_tokens"] == 3


def test_words_and_tokens_that_may_not_be_drawn(daemon):
    free = daemon.complete(PROMPT, max_tokens=4)["choices"][0]["text"]
    word = free.split()[0].strip(".,")
    assert word not in daemon.complete(PROMPT, max_tokens=4, bad_words=[word])["choices"][0]["text"]
    ids = tokens_of(daemon, " yes no")
    only = daemon.complete(PROMPT, max_tokens=6, ignore_eos=True, allowed_token_ids=ids, return_token_ids=True)
    assert set(only["choices"][0]["token_ids"]) <= set(ids)


def test_the_whole_vocabulary_is_refused_by_what_was_sent(daemon):
    for field in ("logprobs", "prompt_logprobs"):
        status, reply = daemon.post("/v1/completions", {"prompt": "x", field: -1})
        assert status == 400
        assert f"`{field}` must be at most 20" in reply["error"]["message"]
        assert reply["error"]["message"].endswith("got -1")


def test_the_tokenizer_is_described(daemon):
    """vLLM's GET /tokenizer_info, with which lm-eval finds the tokens and the template by itself."""
    status, _, text = daemon.request("GET", "/tokenizer_info")
    assert status == 200
    info = json.loads(text)
    assert tokens_of(daemon, info["eos_token"]) == [int(id) for id, token in info["added_tokens_decoder"].items()
                                                    if token["content"] == info["eos_token"]]
    assert {"tokenizer_class", "bos_token", "pad_token", "model_max_length"} <= set(info)
    assert "<|im_start|>" in info["chat_template"]
    assert b".gguf" not in text
