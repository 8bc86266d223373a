"""`dummy:null` computes nothing, so that a measurement sees the cost of all else; requests have the same meaning as with any model."""

import json


def events_of(text: bytes):
    return [json.loads(line[6:]) for line in text.decode().splitlines()
            if line.startswith("data: ") and line != "data: [DONE]"]


def test_a_seed_names_the_text(start_daemon):
    daemon = start_daemon(model="dummy:null")
    body = {"prompt": "Once", "max_tokens": 50, "seed": 7}
    first, second, other = (daemon.post("/v1/completions", b)[1] for b in (body, body, {**body, "seed": 8}))
    assert first["choices"][0]["text"] == second["choices"][0]["text"] != other["choices"][0]["text"]
    assert first["usage"]["completion_tokens"] == 50
    assert first["choices"][0]["finish_reason"] == "length"

    # A stream has the same text, and all tokens have the same log-probability.
    status, _, text = daemon.request("POST", "/v1/completions", {**body, "stream": True, "logprobs": 2})
    assert status == 200
    parts = [e["choices"][0] for e in events_of(text) if e.get("choices")]
    assert "".join(p["text"] for p in parts) == first["choices"][0]["text"]
    scores = [x for p in parts if p.get("logprobs") for x in p["logprobs"]["token_logprobs"]]
    assert len(scores) == 50 and len(set(scores)) == 1

    # Constraints on the output and bans of tokens are kept.
    _, chosen = daemon.post("/v1/completions", {**body, "guided_choice": ["left", "right"]})
    assert chosen["choices"][0]["text"] in ("left", "right")
    _, allowed = daemon.post("/v1/completions", {**body, "allowed_token_ids": [300, 301]})
    _, pieces = daemon.post("/detokenize", {"tokens": [300]})
    _, more = daemon.post("/detokenize", {"tokens": [301]})
    assert not allowed["choices"][0]["text"].replace(pieces["prompt"], "").replace(more["prompt"], "")


def test_one_of_several_models_may_compute_nothing(start_daemon):
    daemon = start_daemon("models.a.path=dummy:null", "models.b.path=dummy:null")
    body = {"prompt": "Once", "max_tokens": 8, "seed": 7}
    first, second = (daemon.post("/v1/completions", {**body, "model": name})[1] for name in "ab")
    assert first["choices"][0]["text"] == second["choices"][0]["text"]
    assert first["usage"]["completion_tokens"] == 8
    assert "computes nothing" in daemon.text_of_log()
