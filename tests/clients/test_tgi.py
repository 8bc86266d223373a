"""Text Generation Inference's routes, by huggingface_hub's unmodified InferenceClient and by plain HTTP; and the health
routes of the Open Inference Protocol."""

import json

import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import ValidationError

PROMPT = "The capital of France is"


@pytest.fixture(scope="module")
def client(daemon):
    return InferenceClient(base_url=daemon.url, token="none")


def generate(daemon, prompt=PROMPT, **parameters):
    status, reply = daemon.post("/generate", {"inputs": prompt, "parameters": {"max_new_tokens": 12, **parameters}})
    assert status == 200, reply
    return reply


def text_of(daemon, **parameters):
    return generate(daemon, **parameters)["generated_text"]


def stream_of(daemon, path="/generate_stream", body=None, **parameters):
    body = body or {"inputs": PROMPT, "parameters": {"max_new_tokens": 12, **parameters}}
    status, headers, text = daemon.request("POST", path, body)
    assert status == 200 and headers["Content-Type"].startswith("text/event-stream"), text
    return [json.loads(line[5:]) for line in text.decode().splitlines() if line.startswith("data:")]


def test_the_client_gets_whole_replies_details_and_streams(daemon, client):
    expected = daemon.complete(PROMPT, max_tokens=12)["choices"][0]["text"]
    assert client.text_generation(PROMPT, max_new_tokens=12) == expected

    whole = client.text_generation(PROMPT, max_new_tokens=12, details=True, decoder_input_details=True, top_n_tokens=3)
    assert whole.generated_text == expected
    assert whole.details.finish_reason == "length" and whole.details.generated_tokens == 12
    assert "".join(token.text for token in whole.details.tokens) == expected
    assert [token.id for token in whole.details.tokens] == [top[0]["id"] for top in whole.details.top_tokens]
    assert all(len(top) == 3 for top in whole.details.top_tokens)
    assert "".join(token.text for token in whole.details.prefill) == PROMPT
    assert whole.details.prefill[0].logprob is None and whole.details.prefill[1].logprob < 0

    assert "".join(client.text_generation(PROMPT, max_new_tokens=12, stream=True)) == expected
    events = list(client.text_generation(PROMPT, max_new_tokens=12, stream=True, details=True, top_n_tokens=2))
    assert [event.index for event in events] == list(range(1, 13))
    assert [event.token.id for event in events] == [token.id for token in whole.details.tokens]
    assert [event.token.logprob for event in events] == [token.logprob for token in whole.details.tokens]
    assert all(event.generated_text is None and event.details is None for event in events[:-1])
    assert events[-1].generated_text == expected
    assert events[-1].details.finish_reason == "length" and events[-1].details.input_length == len(whole.details.prefill)

    with pytest.raises(ValidationError, match="temperature"):
        client.text_generation(PROMPT, temperature=-1.0)
    with pytest.raises(ValidationError, match="watermark"):
        client.text_generation(PROMPT, watermark=True)


def test_the_client_chats_and_asks_what_is_served(daemon, client):
    answer = client.chat_completion([{"role": "user", "content": "Say hello."}], max_tokens=8, temperature=0)
    _, expected = daemon.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Say hello."}],
                                                       "max_tokens": 8, "temperature": 0})
    assert answer.choices[0].message.content == expected["choices"][0]["message"]["content"]
    parts = client.chat_completion([{"role": "user", "content": "Say hello."}], max_tokens=8, temperature=0, stream=True)
    assert "".join(part.choices[0].delta.content or "" for part in parts) == answer.choices[0].message.content
    info = InferenceClient(daemon.url, provider="hf-inference", token="none").get_endpoint_info()
    assert info["model_id"] == daemon.model() and info["router"] == "twilld"
    assert info["max_input_tokens"] + 1 == info["max_total_tokens"] > 1000


def test_every_parameter_that_is_honoured_changes_a_reply(daemon):
    greedy = text_of(daemon)
    assert text_of(daemon, temperature=1.0) == greedy  # do_sample is false, so nothing is sampled
    drawn = text_of(daemon, do_sample=True, temperature=2.0, seed=5)
    assert drawn == text_of(daemon, do_sample=True, temperature=2.0, seed=5) != greedy
    assert drawn != text_of(daemon, do_sample=True, temperature=2.0, seed=6)
    assert text_of(daemon, do_sample=True, temperature=2.0, top_k=1) == greedy
    assert text_of(daemon, do_sample=True, temperature=2.0, top_p=0.001) == greedy
    assert text_of(daemon, repetition_penalty=5.0) != greedy
    assert text_of(daemon, max_new_tokens=40, frequency_penalty=2.0) != text_of(daemon, max_new_tokens=40)
    assert text_of(daemon, return_full_text=True) == PROMPT + greedy
    assert greedy.startswith(text_of(daemon, max_new_tokens=3))

    word = greedy.split()[2]
    stopped = generate(daemon, stop=[word], details=True)
    assert stopped["generated_text"] == greedy[:greedy.index(word) + len(word)]  # in TGI the text includes the stop string
    assert stopped["details"]["finish_reason"] == "stop_sequence"

    cut = stream_of(daemon, truncate=2, details=True)
    assert cut[-1]["details"]["input_length"] == 2
    schema = {"type": "object", "properties": {"town": {"enum": ["Paris"]}}, "required": ["town"]}
    for grammar in ({"type": "json", "value": schema}, {"type": "json_schema", "value": {"name": "x", "schema": schema}}):
        assert json.loads(text_of(daemon, max_new_tokens=60, grammar=grammar)) == {"town": "Paris"}
    assert text_of(daemon, grammar={"type": "regex", "value": "[0-9]{3}"}).isdigit()


def test_the_likeliest_of_several_is_the_reply(daemon):
    reply = generate(daemon, do_sample=True, temperature=1.5, best_of=3, details=True)
    others = reply["details"]["best_of_sequences"]
    def mean(sequence):
        scores = [token["logprob"] for token in sequence["tokens"]]
        return sum(scores) / len(scores)
    assert len(others) == 2 and all(mean(reply["details"]) >= mean(other) for other in others)


def test_a_seed_that_a_reply_names_gives_the_reply_again(daemon):
    first = generate(daemon, do_sample=True, temperature=2.0, details=True)
    seed = first["details"]["seed"]
    assert text_of(daemon, do_sample=True, temperature=2.0, seed=seed) == first["generated_text"]
    assert generate(daemon, details=True)["details"]["seed"] is None  # greedy requests have no seed


def test_characters_stay_whole_and_an_end_has_its_token(start_daemon, scripted_model):
    daemon = start_daemon(model=scripted_model(["caf", "\u00e9", " \U0001f600", "."]))
    events = stream_of(daemon, details=True)
    assert "".join(e["token"]["text"] for e in events if not e["token"]["special"]) == "caf\u00e9 \U0001f600."
    assert events[-1]["generated_text"] == "caf\u00e9 \U0001f600."
    assert events[-1]["token"]["special"] and events[-1]["details"]["finish_reason"] == "eos_token"
    assert [e["token"]["special"] for e in events[:-1]] == [False] * (len(events) - 1)


def test_the_compatible_route_is_both(daemon):
    expected = text_of(daemon)
    body = {"inputs": PROMPT, "parameters": {"max_new_tokens": 12}}
    assert daemon.post("/", body) == (200, [{"generated_text": expected}])
    assert stream_of(daemon, "/", {**body, "stream": True})[-1]["generated_text"] == expected
    assert b"<html" in daemon.request("GET", "/")[2]


def test_errors_are_tgis(daemon):
    for body, name in (({"inputs": ""}, "inputs"), ({}, "inputs"), ({"inputs": "x", "parameters": {"top_k": 0}}, "top_k"),
                       ({"inputs": "x", "parameters": {"max_new_tokens": 10**6}}, "max_new_tokens"),
                       ({"inputs": "x " * 20000}, "prompt"),
                       ({"inputs": "x", "parameters": {"grammar": {"type": "regex", "value": "("}}}, "grammar")):
        for path in ("/generate", "/generate_stream", "/"):
            status, reply = daemon.post(path, body)
            assert (status, reply["error_type"]) == (422, "validation") and name in reply["error"], reply
    assert daemon.post("/generate", "{")[1]["error_type"] == "validation"
    status, reply = daemon.post("/generate", {"inputs": "x", "model": "nope"})
    assert status == 404 and reply["error_type"] == "model_not_found"
    status, _, text = daemon.request("GET", "/generate")
    assert status == 405 and json.loads(text)["error_type"] == "method_not_allowed"


def test_tokens_stand_where_the_text_has_them(daemon):
    text = "Hello, w\u00f6rld \U0001f600!"
    status, tokens = daemon.post("/tokenize", {"inputs": text, "add_special_tokens": False})
    assert status == 200
    _, ids = daemon.post("/tokenize", {"content": text})
    assert [token["id"] for token in tokens] == ids["tokens"]
    covered = 0
    for token in tokens:
        assert text.encode()[token["start"]:token["stop"]].decode() == token["text"]
        assert token["start"] <= covered <= token["stop"]
        covered = max(covered, token["stop"])
    assert covered == len(text.encode())


def test_health_in_the_open_inference_protocol(daemon):
    def get(path):
        status, _, text = daemon.request("GET", path)
        return status, json.loads(text)
    name = daemon.model()
    assert get("/v2/health/live") == (200, {"live": True})
    assert get("/v2/health/ready") == (200, {"ready": True})
    assert get("/v2")[1]["name"] == "twill"
    assert get(f"/v2/models/{name}/ready") == (200, {"name": name, "ready": True})
    assert get(f"/v2/models/{name}")[1]["name"] == name
    assert get("/v2/models/nope/ready")[0] == 404 and "error" in get("/v2/models/nope")[1]
    assert daemon.request("GET", "/ping")[0] == 200
