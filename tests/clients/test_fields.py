"""What /openapi.json says of fields: each that is honoured changes a result, for a request with and one without it."""

import http.client
import json

import pytest

CHAT = {"messages": [{"role": "user", "content": "Name three colours."}], "max_tokens": 12, "temperature": 0}
TEXT = {"prompt": "The capital of France is", "max_tokens": 12, "temperature": 0}
RESPONSE = {"input": "Name three colours.", "max_output_tokens": 12, "temperature": 0}
BASES = {"/v1/chat/completions": CHAT, "/v1/completions": TEXT, "/v1/responses": RESPONSE}

TOOL = {"type": "function", "function": {"name": "paint", "parameters": {
    "type": "object", "properties": {"colour": {"enum": ["red", "blue"]}}, "required": ["colour"]}}}
FLAT_TOOL = {"type": "function", **TOOL["function"]}
YES_NO = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}
DRAWN = {"temperature": 1.5, "seed": 5}
REPEATS = {"max_tokens": 40, "max_output_tokens": 40}  # long enough for the model to say something twice

# Field: (what both requests have beside the base, the value, and what both lack).
COMMON = {
    "model": ({}, "none of that name"),
    "temperature": (DRAWN, 0),
    "top_k": (DRAWN, 1), "top_p": (DRAWN, 0.01), "min_p": (DRAWN, 1.0),
    "repeat_penalty": (REPEATS, 3.0), "repetition_penalty": (REPEATS, 3.0),
    "presence_penalty": (REPEATS, 2.0), "frequency_penalty": (REPEATS, 2.0),
    "seed": ({"temperature": 1.5, "seed": 5}, 6),
    "logit_bias": ({}, {"28": 100}),
    "min_tokens": ({"stop_token_ids": "ALL", "max_tokens": 3, "max_output_tokens": 3}, 2),
    "ignore_eos": ({"logit_bias": {"2": 100}}, True),
    "stop": ({}, "e"), "stop_token_ids": ({}, "FIRST"),
    "include_stop_str_in_output": ({"stop": "e"}, True),
    "skip_special_tokens": ({"logit_bias": {"2": 100}, "ignore_eos": True}, False),
    "bad_words": ({}, "WORDS"), "allowed_token_ids": ({}, [28, 29]),
    "n_predict": ({}, 3, "LIMIT"), "num_predict": ({}, 3, "LIMIT"), "max_new_tokens": ({}, 3, "LIMIT"),
    "structured_outputs": ({}, {"choice": ["maybe"]}),
    "guided_json": ({}, YES_NO), "guided_regex": ({}, "[0-9]{3}"), "guided_choice": ({}, ["maybe", "never"]),
    "guided_grammar": ({}, 'root ::= "maybe"'), "guided_json_object": ({}, True),
    "grammar": ({}, 'root ::= "maybe"'), "json_schema": ({}, YES_NO),
    "response_format": ({}, {"type": "json_schema", "json_schema": {"name": "a", "schema": YES_NO}}),
    "stream": ({}, True),
}
GENERATION = {
    "n": (DRAWN, 2), "max_tokens": ({}, 3, "LIMIT"), "max_completion_tokens": ({}, 3, "LIMIT"),
    "prompt_logprobs": ({}, 1), "truncate_prompt_tokens": ({}, 3),
    "return_token_ids": ({}, True), "return_tokens_as_token_ids": ({"logprobs": "LOGPROBS"}, True),
    "stream_options": ({"stream": True}, {"include_usage": True}),
}
OWN = {
    "/v1/chat/completions": {
        "messages": ({}, [{"role": "user", "content": "Count to ten."}]),
        "tools": ({}, [TOOL]), "tool_choice": ({"tools": [TOOL]}, "required"),
        "parallel_tool_calls": ({}, False),
        "functions": ({}, [TOOL["function"]]),
        "function_call": ({"functions": [TOOL["function"]]}, {"name": "paint"}),
        "add_generation_prompt": ({}, False), "chat_template": ({}, "none of that name"),
        "chat_template_kwargs": ({}, {"messages": []}),
        "logprobs": ({}, True), "top_logprobs": ({"logprobs": True}, 2),
    },
    "/v1/completions": {
        "prompt": ({}, "Once upon a time"), "echo": ({}, True), "add_special_tokens": ({}, False),
        "logprobs": ({}, 1),
    },
    "/v1/responses": {
        "input": ({}, "Count to ten."), "instructions": ({}, "Answer in French."),
        "max_output_tokens": ({}, 3, "LIMIT"),
        "tools": ({}, [FLAT_TOOL]), "tool_choice": ({"tools": [FLAT_TOOL]}, "required"),
        "parallel_tool_calls": ({}, False),
        "text": ({}, {"format": {"type": "json_schema", "name": "a", "schema": YES_NO}}),
        "include": ({}, ["message.output_text.logprobs"]),
        "top_logprobs": ({"include": ["message.output_text.logprobs"]}, 2),
        "previous_response_id": ({}, "PREVIOUS"), "background": ({}, True),
        "metadata": ({}, {"a": "b"}), "user": ({}, "somebody"), "reasoning": ({}, {"effort": "low"}),
        "truncation": ({}, "auto"), "store": ({}, False),
        "n": ({}, 2),  # refused, since a response has one output
    },
}
# What one request alone does not show, and where it is shown.
ELSEWHERE = {
    "priority": "tests/actors: a lower priority is served earlier",
    "cache_salt": "test_a_salt_of_ones_own_shares_no_prefix below",
    "store": "test_what_is_stored_can_be_read_again below",
    "best_of": "must be what `n` is", "modalities": "must be text",
    "generate": "over WebSocket alone", "add_special_tokens": "the default model has no token to add",
    "parallel_tool_calls": "test_tools.py",
}


def ask(daemon, method, path, body=None):
    connection = http.client.HTTPConnection(daemon.host, daemon.port, timeout=120)
    try:
        connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
    finally:
        connection.close()


def once(daemon, path, body, known={}):
    """The reply to a body, which is asked for the first time alone."""
    key = (daemon.url, path, json.dumps(body))
    if key not in known:
        known[key] = ask(daemon, "POST", path, body)
    return known[key]


def schema_of(document, path):
    return document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]


@pytest.fixture(scope="module")
def document(daemon):
    return json.loads(ask(daemon, "GET", "/openapi.json")[1])


def comparable(text):
    """A reply without what differs between two equal requests."""
    if not text.startswith("{"):
        return "a stream"
    whole = json.loads(text)
    for name in ("id", "created", "created_at", "system_fingerprint"):
        whole.pop(name, None)
    (whole.get("usage") or {}).pop("prompt_tokens_details", None)
    (whole.get("usage") or {}).pop("input_tokens_details", None)
    for item in whole.get("output", []):
        item.pop("id", None)
    return json.dumps(whole)


def changed(daemon, path, field, entry):
    extra, given, *lacking = entry
    base = {**BASES[path], **extra}
    if path == "/v1/responses":
        base.pop("max_tokens", None)
    else:
        base.pop("max_output_tokens", None)
    if base.get("logprobs") == "LOGPROBS":
        base["logprobs"] = 1 if path == "/v1/completions" else True
    if lacking == ["LIMIT"]:
        for name in ("max_tokens", "max_output_tokens"):
            base.pop(name, None)
    if given == "FIRST" or base.get("stop_token_ids") == "ALL" or given == "WORDS":
        whole = json.loads(once(daemon, path, BASES[path])[1])
        said = (whole["choices"][0].get("text") or whole["choices"][0].get("message", {}).get("content")
                if "choices" in whole else whole["output"][0]["content"][0]["text"])
        _, text = ask(daemon, "POST", "/tokenize", {"prompt": said, "add_special_tokens": False})
        tokens = json.loads(text)["tokens"]
        if given == "WORDS":
            given = [said.split()[0]]
        elif given == "FIRST":
            given = tokens[:1]
        else:
            base["stop_token_ids"] = sorted(set(tokens))
    if given == "PREVIOUS":
        _, text = ask(daemon, "POST", path, RESPONSE)
        given = json.loads(text)["id"]
    without = once(daemon, path, base)
    assert without[0] == 200, (field, without)
    with_it = ask(daemon, "POST", path, {**base, field: given})
    same_stream = with_it[1].count("data:") == without[1].count("data:")
    return (with_it[0], comparable(with_it[1]), same_stream) != (without[0], comparable(without[1]), True)


@pytest.mark.parametrize("path", BASES)
def test_every_honoured_field_changes_a_result(daemon, document, path):
    shown = {**COMMON, **(GENERATION if path != "/v1/responses" else {}), **OWN[path]}
    for field in ELSEWHERE:
        shown.pop(field, None)
    honoured = {name for name, about in schema_of(document, path).items() if about["x-twill"] == "honoured"}
    missing = honoured - set(shown) - set(ELSEWHERE)
    assert not missing, f"{path} documents fields that nobody shows: {sorted(missing)}"
    idle = [field for field in sorted(honoured & set(shown)) if not changed(daemon, path, field, shown[field])]
    assert not idle, f"{path}: these fields changed nothing: {idle}"


@pytest.mark.parametrize("path", BASES)
def test_a_field_without_effect_changes_none(daemon, document, path):
    fields = {name: about["description"] for name, about in schema_of(document, path).items()
              if about["x-twill"] == "no effect"}
    base = comparable(ask(daemon, "POST", path, BASES[path])[1])
    odd = {name: [{"a": 1}, "x", 3][i % 3] for i, name in enumerate(fields)}
    assert comparable(ask(daemon, "POST", path, {**BASES[path], **odd})[1]) == base


def test_a_salt_of_ones_own_shares_no_prefix(daemon):
    prompt = {"prompt": "word " * 100, "max_tokens": 1}

    def cached(salt):
        _, text = ask(daemon, "POST", "/v1/completions", {**prompt, "cache_salt": salt})
        return json.loads(text)["usage"]["prompt_tokens_details"]["cached_tokens"]

    assert cached("one") == 0 and cached("one") > 0 and cached("two") == 0


@pytest.mark.parametrize("path", BASES)
def test_what_is_stored_can_be_read_again(daemon, path):
    for wanted in (True, False):
        _, text = ask(daemon, "POST", path, {**BASES[path], "store": wanted})
        assert (ask(daemon, "GET", f"{path}/{json.loads(text)['id']}")[0] == 200) is wanted
