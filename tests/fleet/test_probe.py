"""Each router answers as its workers do. openai's client and raw HTTP send requests through a router and directly to a worker.

Tables list what a router does not pass on or answers by itself. Tests assert them, so that a change of a router is seen.
"""

import concurrent.futures
import json
import os
import socket
import time
from typing import Literal

import openai
import pydantic
import pytest
from routers import KEY, ROUTERS
from workers import CLIENTS, Worker

LONG = pytest.mark.skipif("TWILL_LONG" not in os.environ, reason="a router that is installed with --long")
BEARER = {"Authorization": f"Bearer {KEY}"}
ASK = [{"role": "user", "content": "What is the weather in Oslo?"}]
WEATHER = {"name": "weather", "description": "The weather of a city.",
           "parameters": {"type": "object", "required": ["city"], "additionalProperties": False,
                          "properties": {"city": {"enum": ["Rome", "Oslo"]}}}}
TOOLS = {"tools": [{"type": "function", "function": WEATHER}], "tool_choice": "required", "parallel_tool_calls": False}
FLAT_TOOLS = {"tools": [{"type": "function", **WEATHER}], "tool_choice": "required", "parallel_tool_calls": False}


@pytest.fixture(scope="module")
def workers():
    settings = ("model.compute=f32", "kv.memory=256MiB", f"model.chat_template={CLIENTS.parent / 'tools.jinja'}",
                "model.tool_format=hermes")
    made = [Worker(*settings) for _ in range(2)]
    yield made
    for one in made:
        one.stop()


@pytest.fixture(scope="module")
def locked():
    """Workers that require a key."""
    made = [Worker("kv.memory=64MiB", f'server.api_keys=["{KEY}"]', "model.name=locked", model="dummy:null") for _ in range(2)]
    yield made
    for one in made:
        one.stop()


@pytest.fixture(scope="module", params=[pytest.param(one, id=one.name, marks=LONG if one.suite else ()) for one in ROUTERS])
def router(request, workers):
    made = request.param(workers)
    yield made
    made.stop()


@pytest.fixture
def model(router):
    return router.model


def client_of(at):
    return openai.OpenAI(base_url=at.url + "/v1", api_key=KEY, max_retries=0, timeout=120)


def ask(at, method: str, path: str, body=None):
    """Sends a request with the key; returns its status and text."""
    status, _, text = at.request(method, path, body, headers=BEARER)
    return status, text


# ---- answers ----

class Forecast(pydantic.BaseModel):
    city: Literal["Rome", "Oslo"]
    sunny: bool


def of_usage(usage):
    return (usage.prompt_tokens, usage.completion_tokens) if hasattr(usage, "prompt_tokens") else (usage.input_tokens, usage.output_tokens)


def of_chat(reply):
    choice = reply.choices[0]
    calls = [(one.function.name, one.function.arguments) for one in choice.message.tool_calls or []]
    return choice.message.content or "", calls, choice.finish_reason, of_usage(reply.usage)


def of_chat_stream(stream):
    text, names, arguments, reasons, usages = "", [], "", [], []
    for event in stream:
        for choice in event.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or []:
                names += [call.function.name] if call.function.name else []
                arguments += call.function.arguments or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
        usages += [of_usage(event.usage)] if event.usage else []
    assert (len(reasons), len(usages)) == (1, 1)
    return text, [(name, arguments) for name in names], reasons[0], usages[0]


def of_completion(reply):
    return reply.choices[0].text, reply.choices[0].finish_reason, of_usage(reply.usage)


def of_completion_stream(stream):
    choices = [choice for event in stream for choice in event.choices]
    return "".join(one.text for one in choices), [one.finish_reason for one in choices if one.finish_reason]


def of_response(reply):
    calls = [(one.name, one.arguments) for one in reply.output if one.type == "function_call"]
    return reply.status, reply.output_text, calls, of_usage(reply.usage)


def of_response_stream(stream):
    events = list(stream)
    text = "".join(one.delta for one in events if one.type == "response.output_text.delta")
    assert text == events[-1].response.output_text
    return [one.type for one in events if one.type != "response.in_progress"], of_response(events[-1].response)


GREEDY = {"temperature": 0, "max_tokens": 24}
CALL = {"temperature": 0, "max_tokens": 64, **TOOLS}  # room for a whole call
STREAM = {"stream": True, "stream_options": {"include_usage": True}}
IDS = {"prompt": [504, 2365, 6354, 16438, 27003, 690], **GREEDY}
RESPONSE = {"input": "Say hello.", "temperature": 0, "max_output_tokens": 16}
ANSWERS = {
    "chat": lambda c, m: of_chat(c.chat.completions.create(model=m, messages=ASK, **GREEDY)),
    "chat, streamed": lambda c, m: of_chat_stream(c.chat.completions.create(model=m, messages=ASK, **GREEDY, **STREAM)),
    "tools": lambda c, m: of_chat(c.chat.completions.create(model=m, messages=ASK, **CALL)),
    "tools, streamed": lambda c, m: of_chat_stream(c.chat.completions.create(model=m, messages=ASK, **CALL, **STREAM)),
    "schema": lambda c, m: repr(c.chat.completions.parse(
        model=m, messages=ASK, response_format=Forecast, temperature=0, max_tokens=200).choices[0].message.parsed),
    "token ids": lambda c, m: of_completion(c.completions.create(model=m, **IDS)),
    "token ids, streamed": lambda c, m: of_completion_stream(c.completions.create(model=m, stream=True, **IDS)),
    "response": lambda c, m: of_response(c.responses.create(model=m, **RESPONSE)),
    "response, streamed": lambda c, m: of_response_stream(c.responses.create(model=m, stream=True, **RESPONSE)),
    "response of tools": lambda c, m: of_response(c.responses.create(
        model=m, input=ASK, temperature=0, max_output_tokens=64, **FLAT_TOOLS)),
}


# What openai's client raises when a router answers differently from a worker.
OWN_ANSWERS = {
    ("sglang-router", "token ids"): openai.UnprocessableEntityError,  # this router takes no prompts of token ids
    ("sglang-router", "token ids, streamed"): openai.UnprocessableEntityError,
    ("LiteLLM", "token ids, streamed"): TypeError,  # its last event has no text
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_answers_are_those_of_a_worker(router, workers, model, kind):
    if own := OWN_ANSWERS.get((router.name, kind)):
        with pytest.raises(own):
            ANSWERS[kind](client_of(router), model)
        return
    for _ in workers:  # once for each worker, since routers may choose them in turns
        assert ANSWERS[kind](client_of(router), model) == ANSWERS[kind](client_of(workers[0]), model)


def test_the_models_are_those_of_the_workers(router, model):
    assert [one.id for one in client_of(router).models.list()] == [model]


def test_many_streams_at_once_are_each_right_and_spread(router, workers, model):
    def one(at, number):
        messages = [{"role": "user", "content": f"Count from {number}."}]
        return of_chat_stream(client_of(at).chat.completions.create(model=model, messages=messages, temperature=0, max_tokens=12, **STREAM))

    wanted = [one(workers[0], number) for number in range(32)]
    before = [at.daemon.metric("twill_prompt_tokens_total") for at in workers]
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert list(pool.map(lambda number: one(router, number), range(32))) == wanted
    if router.name != "sglang-router":  # it knows loads of up to 5 s ago, so that a burst may go to one worker
        assert all(at.daemon.metric("twill_prompt_tokens_total") > was for at, was in zip(workers, before))


def test_a_large_body_arrives_whole(router, workers, model):
    """200 KB of tools, which `tool_choice` keeps out of the prompt."""
    tools = [{"type": "function", "function": {**WEATHER, "name": f"w{number}", "description": "sun " * 500}} for number in range(100)]
    body = {"model": model, "tools": tools, "tool_choice": "none", "messages": ASK, **GREEDY}
    assert len(json.dumps(body)) > 200_000
    answers = []
    for at in (router, workers[0].daemon):
        status, text = ask(at, "POST", "/v1/chat/completions", body)
        assert status == 200, text
        reply = json.loads(text)
        answers.append((reply["choices"][0]["message"]["content"], reply["usage"]["prompt_tokens"]))
    assert answers[0] == answers[1]


# ---- errors ----

def body_of_chat(**fields):
    return {"messages": ASK, "max_tokens": 2, **fields}


ERRORS = {
    "chat of another model": ("/v1/chat/completions", body_of_chat(model="gone"), 404),
    "completion of another model": ("/v1/completions", {"model": "gone", "prompt": "x"}, 404),
    "response of another model": ("/v1/responses", {"model": "gone", "input": "x"}, 404),
    "no JSON": ("/v1/chat/completions", '{"model": "MODEL", "messages": [', 400),
    "a role that is none": ("/v1/chat/completions", body_of_chat(model="MODEL", messages=[{"role": "wizard", "content": "x"}]), 400),
    "a negative temperature": ("/v1/chat/completions", body_of_chat(model="MODEL", temperature=-1), 400),
    "a negative temperature, streamed": ("/v1/chat/completions", body_of_chat(model="MODEL", temperature=-1, stream=True), 400),
    "a temperature that is text": ("/v1/chat/completions", body_of_chat(model="MODEL", temperature="hot"), 400),
    "a token id that is none": ("/v1/completions", {"model": "MODEL", "prompt": [99_999_999]}, 400),
    "an input that is a number": ("/v1/responses", {"model": "MODEL", "input": 7}, 400),
    "a prompt of 200 KB": ("/v1/chat/completions", body_of_chat(model="MODEL", messages=[{"role": "user", "content": "hi " * 70_000}]), 400),
}
# Errors that a router does not pass on byte by byte: the status of its own answer, and whether that is an error object.
OWN_ERRORS = {
    "vllm-router": {"no JSON": (400, False), "a temperature that is text": (422, False)},
    "sglang-router": {
        **dict.fromkeys(("no JSON", "a role that is none", "a negative temperature", "a negative temperature, streamed",
                         "a temperature that is text", "an input that is a number"), (400, True)),
        "a token id that is none": (422, False)},
    "LiteLLM": {**dict.fromkeys(ERRORS, (400, True)), "an input that is a number": (500, True)},
    "Dynamo": {name: (status, False) for name, (_, _, status) in ERRORS.items()},
}


def test_errors_reach_the_client_unchanged(router, workers, model):
    own = {}
    for name, (path, body, wanted) in ERRORS.items():
        text = (body if isinstance(body, str) else json.dumps(body)).replace("MODEL", model)
        direct, through = (ask(at, "POST", path, text) for at in (workers[0].daemon, router))
        assert direct[0] == wanted, (name, direct)
        if through != direct:
            try:
                is_object = "message" in json.loads(through[1])["error"]
            except (ValueError, KeyError, TypeError):
                is_object = False
            own[name] = through[0], is_object
    assert own == OWN_ERRORS.get(router.name, {})


# The statuses of a router without a key and with a wrong key. LiteLLM looks up keys itself and has no database here; Dynamo has no keys.
OWN_REFUSALS = {"LiteLLM": (500, 400), "Dynamo": (200, 200)}


@pytest.mark.parametrize("kind", ("chat", "completion"))
def test_keys_are_the_workers(router, locked, kind):
    made = type(router)(locked, key=KEY, model="locked")
    try:
        path = {"chat": "/v1/chat/completions", "completion": "/v1/completions"}[kind]
        body = {"model": "locked", "messages": ASK, "max_tokens": 8, "seed": 7} if kind == "chat" else {
            "model": "locked", "prompt": "x", "max_tokens": 8, "seed": 7}
        refusals = [made.request("POST", path, body, headers=header) for header in ({}, {"Authorization": "Bearer sk-wrong"})]
        statuses = tuple(status for status, _, _ in refusals)
        assert statuses == OWN_REFUSALS.get(made.name, (401, 401))
        assert made.name in OWN_REFUSALS or all(json.loads(text)["error"]["code"] == "invalid_api_key" for _, _, text in refusals)
        (_, direct), (status, through) = (ask(at, "POST", path, body) for at in (locked[0].daemon, made))
        assert status == 200 and json.loads(direct)["choices"] and \
            json.loads(direct)["usage"]["completion_tokens"] == json.loads(through)["usage"]["completion_tokens"], through
    finally:
        made.stop()


@pytest.fixture(scope="module")
def narrow():
    """Workers that run one request and queue another."""
    settings = ("kv.memory=64MiB", "scheduler.max_running=1", "scheduler.max_queued=1", "model.name=narrow")
    made = [Worker(*settings, model="dummy:null?step-us=5000") for _ in range(2)]
    yield made
    for one in made:
        one.stop()


def test_a_full_queue_is_refused_and_soon_forgotten(router, narrow):
    made = type(router)(narrow, model="narrow")
    try:
        def status(length):
            body = {"model": "narrow", "messages": ASK, "max_tokens": length, "ignore_eos": True}
            return ask(made, "POST", "/v1/chat/completions", body)[0]

        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            burst = set(pool.map(lambda _: status(100), range(32)))
        for at in narrow:
            at.daemon.wait_metric("twill_num_requests_running", 0)
        assert (burst, status(1)) == ({200, 429}, 200)
    finally:
        made.stop()


# ---- what is passed ----

FIELDS = {"min_tokens": -1, "truncate_prompt_tokens": -9, "ignore_eos": 7, "stop_token_ids": 7, "guided_choice": 7, "top_k": "x",
          "structured_outputs": 7, "chat_template_kwargs": 7, "return_token_ids": 7, "logit_bias": 7, "seed": "x",
          "cache_salt": 7, "priority": "x", "min_p": 7, "repetition_penalty": -1, "prompt_logprobs": "x"}
LOST_FIELDS = {
    "sglang-router": {"priority", "truncate_prompt_tokens", "return_token_ids", "guided_choice", "prompt_logprobs", "cache_salt",
                      "structured_outputs"},
}


def test_fields_beyond_openais_reach_the_worker(router, workers, model):
    """Each field has an invalid value, so a request is answered with text only if the router lost the field."""
    def lost(at):
        return {field for field, value in FIELDS.items()
                if ask(at, "POST", "/v1/chat/completions", body_of_chat(model=model, **{field: value}))[0] == 200}

    assert lost(workers[0].daemon) == set()
    gone = lost(router)
    assert gone == LOST_FIELDS.get(router.name, set())


NAMELESS = {"/v1/chat/completions": {"messages": ASK, "max_tokens": 2}, "/v1/completions": {"prompt": "x", "max_tokens": 2},
            "/v1/responses": {"input": "x", "max_output_tokens": 2}}
WANT_A_NAME = {
    "sglang-router": {"/v1/completions": 422},
    "LiteLLM": dict.fromkeys(NAMELESS, 400),
    "Dynamo": dict.fromkeys(NAMELESS, 400),
}


def test_requests_may_name_no_model(router):
    status = {path: ask(router, "POST", path, body)[0] for path, body in NAMELESS.items()}
    assert {path: code for path, code in status.items() if code != 200} == WANT_A_NAME.get(router.name, {})


ROUTES = {
    "GET /v1/models": None, "GET /v1/models/MODEL": None, "GET /version": None, "GET /server_info": None, "GET /model_info": None,
    "GET /tokenizer_info": None, "GET /v1/files": None, "GET /v1/batches": None, "GET /load": None,
    "POST /tokenize": {"prompt": "x"}, "POST /detokenize": {"tokens": [5]}, "POST /v1/tokenize": {"prompt": "x"},
    "POST /v1/completions/render": {"prompt": "x"}, "POST /v1/chat/completions/render": {"messages": ASK},
}
NOT_PASSED = {  # the status; 200 where a router has an answer of its own
    "HAProxy": dict.fromkeys(("GET /load", "GET /server_info", "GET /model_info"), 404),  # the example does not serve these to clients
    "sglang-router": {**dict.fromkeys(ROUTES, 404), "GET /v1/models": 200, "POST /v1/tokenize": 400},
    "LiteLLM": {**{route: 404 for route in ROUTES if route not in ("GET /v1/files", "GET /v1/batches")},
                "GET /v1/models": 200, "GET /v1/models/MODEL": 200},
    "Dynamo": {**dict.fromkeys(ROUTES, 404), "GET /v1/models": 200, "GET /v1/models/MODEL": 200},
}


def test_routes_that_are_passed(router, workers, model):
    def answer(at, route):
        method, path = route.replace("MODEL", model).split()
        status, text = ask(at, method, path, ROUTES[route])
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                one.pop("request_id", None)
                for entry in [one, *(one.get("data") or [])]:
                    entry.pop("created", None)
        return status, value

    own = {}
    for route in ROUTES:
        direct, through = answer(workers[0].daemon, route), answer(router, route)
        assert direct[0] == 200, (route, direct)
        if through != direct:
            own[route] = through[0]
    assert own == NOT_PASSED.get(router.name, {})


# ---- clients that go away ----

LENGTH = 1000  # tokens of an answer that its client does not wait for
NOT_CANCELLED = {
    "LiteLLM": {"one answer"},
}


def test_a_client_that_goes_away_ends_its_request(router, workers, model):
    def tokens():
        return sum(at.daemon.metric("twill_generation_tokens_total") for at in workers)

    def running():
        return sum(at.daemon.metric("twill_num_requests_running") for at in workers)

    def wait_running(wanted):
        deadline = time.monotonic() + 120
        while running() != wanted:
            assert time.monotonic() < deadline, f"{running()} requests run, expected {wanted}"
            time.sleep(0.01)

    went_on = set()
    for kind, streams in (("a stream", True), ("one answer", False)):
        before = tokens()
        body = json.dumps({"model": model, "messages": ASK, "max_tokens": LENGTH, "ignore_eos": True, "stream": streams})
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
        with socket.create_connection((router.host, router.port), timeout=60) as connection:
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            if streams:
                reader = connection.makefile("rb")
                while not reader.readline().startswith(b"data:"):
                    pass
                reader.close()
            wait_running(1)
        wait_running(0)
        for at in workers:
            at.daemon.check_ledger()
        if tokens() - before >= LENGTH:
            went_on.add(kind)
    assert went_on == NOT_CANCELLED.get(router.name, set())


# ---- loads ----

def test_a_router_knows_its_workers(router, workers, model):
    """A router lists its workers and their loads. vllm-router expects an object from /get_load, not SGLang's list, so that it shows -1."""
    if router.name in ("HAProxy", "LiteLLM", "Dynamo"):  # these routers list no workers
        assert ask(router, "GET", "/workers")[0] == ask(router, "GET", "/get_loads")[0] == 404
        return
    known = json.loads(ask(router, "GET", "/workers")[1])["workers"]
    assert {one["url"] for one in known} == {at.url for at in workers}
    assert {one["model_id"] for one in known} == {model if router.name == "sglang-router" else "unknown"}
    loads = [one["load"] for one in json.loads(ask(router, "GET", "/get_loads")[1])["workers"]]
    assert loads == ([0, 0] if router.name == "sglang-router" else [-1, -1])
    if router.name != "sglang-router":
        return
    with client_of(router).chat.completions.create(model=model, messages=ASK, max_tokens=LENGTH, stream=True,
                                                   extra_body={"min_tokens": LENGTH}) as stream:
        next(iter(stream))
        loads = [one["load"] for one in json.loads(ask(router, "GET", "/get_loads")[1])["workers"]]
        assert min(loads) == 0 and max(loads) > len(ASK[0]["content"].split()), loads
