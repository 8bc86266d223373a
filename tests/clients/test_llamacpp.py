"""The routes of llama.cpp's server, by plain HTTP as its clients use them."""

import json
import time

PROMPT = "The capital of France is"


def complete(daemon, prompt=PROMPT, **fields):
    status, reply = daemon.post("/completion", {"prompt": prompt, "n_predict": 12, "temperature": 0, **fields})
    assert status == 200, reply
    return reply


def text_of(daemon, **fields):
    return complete(daemon, **fields)["content"]


def stream_of(daemon, **fields):
    body = {"prompt": PROMPT, "n_predict": 12, "temperature": 0, "stream": True, **fields}
    status, headers, text = daemon.request("POST", "/completion", body)
    assert status == 200 and headers["Content-Type"].startswith("text/event-stream"), text
    return [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ")]


def test_a_completion_whole_and_streamed(daemon):
    expected = daemon.complete(PROMPT, max_tokens=12)["choices"][0]["text"]
    whole = complete(daemon, return_tokens=True, n_probs=2)
    assert whole["content"] == expected and whole["stop"] is True and whole["stop_type"] == "limit"
    assert whole["prompt"] == PROMPT and whole["model"] == daemon.model()
    assert whole["tokens_predicted"] == len(whole["tokens"]) == len(whole["completion_probabilities"]) == 12
    assert daemon.post("/detokenize", {"tokens": whole["tokens"]})[1]["content"] == expected
    for token, scored in zip(whole["tokens"], whole["completion_probabilities"]):
        assert scored["id"] == token == scored["top_logprobs"][0]["id"] and len(scored["top_logprobs"]) == 2
        assert bytes(scored["bytes"]).decode() == scored["token"] and scored["logprob"] <= 0
    timings = whole["timings"]
    assert timings["predicted_n"] == 12 and timings["prompt_n"] + timings["cache_n"] == whole["tokens_evaluated"]
    assert timings["predicted_ms"] > 0 and timings["predicted_per_second"] > 0

    events = stream_of(daemon)
    assert [event["stop"] for event in events] == [False] * (len(events) - 1) + [True]
    assert "".join(event["content"] for event in events) == expected
    assert [token for event in events for token in event["tokens"]] == whole["tokens"]
    assert events[-1]["stop_type"] == "limit" and events[-1]["generation_settings"]["n_predict"] == 12
    assert daemon.post("/completions", {"prompt": PROMPT, "n_predict": 12, "temperature": 0})[1]["content"] == expected


def test_every_field_that_is_honoured_changes_a_reply(daemon):
    greedy = text_of(daemon)
    hot = {"temperature": 2.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    drawn = text_of(daemon, **hot, seed=5)
    assert drawn == text_of(daemon, **hot, seed=5) != greedy
    assert drawn != text_of(daemon, **hot, seed=6)
    assert text_of(daemon, **{**hot, "top_k": 1}) == greedy
    assert text_of(daemon, **{**hot, "top_p": 0.001}) == greedy
    assert text_of(daemon, **{**hot, "min_p": 1.0}) == greedy
    assert text_of(daemon, **{**hot, "samplers": ["top_k"]}, seed=5) != drawn  # without the sampler `temperature`, the text differs
    for fields in ({"repeat_penalty": 5.0}, {"presence_penalty": 2.0, "n_predict": 40}, {"frequency_penalty": 2.0, "n_predict": 40}):
        assert text_of(daemon, **fields) != text_of(daemon, n_predict=fields.get("n_predict", 12))
        assert text_of(daemon, **fields, repeat_last_n=0) == text_of(daemon, n_predict=fields.get("n_predict", 12))
    first = complete(daemon, return_tokens=True)["tokens"][0]
    assert not text_of(daemon, logit_bias=[[first, False]]).startswith(text_of(daemon, n_predict=1))
    assert text_of(daemon, logit_bias=[[first, -100]]) == text_of(daemon, logit_bias={str(first): False})
    assert text_of(daemon, n_predict=1, logit_bias=[[" London", 100]]) != text_of(daemon, n_predict=1)
    word = greedy.split()[2]
    stopped = complete(daemon, stop=[word, ""])
    assert stopped["content"] == greedy[:greedy.index(word)]
    assert (stopped["stop_type"], stopped["stopping_word"]) == ("word", word)
    schema = {"type": "object", "properties": {"town": {"enum": ["Paris"]}}, "required": ["town"]}
    assert json.loads(text_of(daemon, n_predict=60, json_schema=schema)) == {"town": "Paris"}
    assert text_of(daemon, grammar='root ::= "yes" | "no"') in ("yes", "no")
    nothing = complete(daemon, n_predict=0)
    assert nothing["content"] == "" and nothing["tokens_predicted"] == 0
    assert len(complete(daemon, n_cmpl=2)) == 2
    assert complete(daemon, response_fields=["content", "generation_settings/n_predict"]) == {
        "content": greedy, "generation_settings/n_predict": 12}
    assert all("timings" in event for event in stream_of(daemon, timings_per_token=True))


def test_an_end_is_ignored_where_a_request_says_so(start_daemon, scripted_model):
    daemon = start_daemon(model=scripted_model(["a", "b", "c"]))
    ended = complete(daemon)
    assert (ended["content"], ended["stop_type"]) == ("abc", "eos")
    assert complete(daemon, ignore_eos=True)["stop_type"] == "limit"


def test_a_seed_that_a_reply_names_gives_the_reply_again(daemon):
    first = complete(daemon, temperature=2.0, seed=-1)
    again = complete(daemon, temperature=2.0, seed=first["generation_settings"]["seed"])
    assert again["content"] == first["content"]


def test_every_form_of_a_prompt_means_the_same(daemon):
    expected = text_of(daemon)
    _, tokenized = daemon.post("/tokenize", {"content": PROMPT, "add_special": True, "with_pieces": True})
    ids = [token["id"] for token in tokenized["tokens"]]
    assert "".join(token["piece"] for token in tokenized["tokens"]) == PROMPT
    tail = "".join(token["piece"] for token in tokenized["tokens"][2:])
    for prompt in (ids, [*ids[:2], tail], {"prompt_string": PROMPT}, [[*ids[:2], tail]]):
        reply = complete(daemon, prompt=prompt)
        reply = reply[0] if isinstance(reply, list) else reply
        assert (reply["content"], reply["prompt"]) == (expected, PROMPT)
    several = complete(daemon, prompt=[PROMPT, ids])
    assert [(one["index"], one["content"]) for one in several] == [(0, expected), (1, expected)]


def test_a_template_is_applied(daemon):
    messages = [{"role": "user", "content": "Say hello."}]
    _, applied = daemon.post("/apply-template", {"messages": messages})
    _, chat = daemon.post("/v1/chat/completions", {"messages": messages, "max_tokens": 8, "temperature": 0})
    assert "Say hello." in applied["prompt"]
    reply = complete(daemon, prompt=applied["prompt"], n_predict=8)
    assert reply["content"] == chat["choices"][0]["message"]["content"]
    assert reply["tokens_evaluated"] == chat["usage"]["prompt_tokens"]


def test_what_the_server_says_of_itself(daemon):
    def get(path):
        status, _, text = daemon.request("GET", path)
        return status, json.loads(text)
    status, props = get("/props")
    assert status == 200 and props["model_alias"] == daemon.model() and "/" not in props["model_path"]
    defaults, used = props["default_generation_settings"]["params"], complete(daemon, temperature=None)["generation_settings"]
    for name in ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "samplers", "ignore_eos"):
        assert defaults[name] == used[name], name
    assert "messages" in props["chat_template"] and props["eos_token"]
    deadline = time.monotonic() + 10
    while True:  # a request that was just answered may still be counted
        status, slots = get("/slots?fail_on_no_slot=1")
        assert status == 200 and len(slots) == props["total_slots"]
        if not any(slot["is_processing"] for slot in slots):
            break
        assert time.monotonic() < deadline, slots
    assert get("/props?model=nope")[0] == get("/slots?model=nope")[0] == 404


def test_errors_are_llama_cpps(daemon):
    for body, name in (({}, "prompt"), ({"prompt": []}, "prompt"), ({"prompt": "x", "mirostat": 2}, "mirostat"),
                       ({"prompt": "x", "lora": [{"id": 0, "scale": 1}]}, "lora"), ({"prompt": "x", "n_probs": 1000}, "n_probs"),
                       ({"prompt": "x", "grammar": "root ::= ("}, "grammar")):
        status, reply = daemon.post("/completion", body)
        error = reply["error"]
        assert (status, error["code"], error["type"]) == (400, 400, "invalid_request_error"), reply
        assert f"`{name}`" in error["message"], reply
    status, reply = daemon.post("/completion", {"prompt": "x " * 20000})
    assert (status, reply["error"]["type"]) == (400, "exceed_context_size_error")
    status, _, text = daemon.request("GET", "/completion")
    assert status == 405 and json.loads(text)["error"]["code"] == 405
