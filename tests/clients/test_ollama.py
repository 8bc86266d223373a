"""Ollama's API, through its own Python package, unmodified, and with bodies as other clients of Ollama send them."""

import asyncio
import json
import random
from typing import Literal

import ollama
import pydantic
import pytest

SHORT = {"temperature": 0, "num_predict": 12}
ASK = [{"role": "user", "content": "Name a colour."}]
TOOLS_TEMPLATE = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'tool' %}{{ m.name }} {{ m.tool_call_id }}: {% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>"
    "{% endfor %}<|im_start|>assistant\n{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}")


@pytest.fixture
def client(daemon):
    return ollama.Client(host=daemon.url)


@pytest.fixture
def name(daemon):
    return daemon.model()


def text_of(stream, chat=True):
    parts = list(stream)
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    return "".join(part.message.content if chat else part.response for part in parts), parts


def test_a_chat_is_the_same_streamed_and_whole(client, name, daemon):
    whole = client.chat(name, ASK, options=SHORT)
    streamed, parts = text_of(client.chat(name, ASK, options=SHORT, stream=True))
    assert whole.message.role == "assistant" and whole.message.content == streamed
    assert len(parts) > 3 and whole.model == name and whole.done_reason == "length"
    for end in (whole, parts[-1]):
        assert end.eval_count == 12 and end.prompt_eval_count > 5
        assert end.total_duration >= end.load_duration + end.prompt_eval_duration + end.eval_duration - 3
        assert min(end.total_duration, end.prompt_eval_duration, end.eval_duration) > 0
    _, openai = daemon.post("/v1/chat/completions", {"messages": ASK, "temperature": 0, "max_tokens": 12})
    assert openai["choices"][0]["message"]["content"] == streamed
    assert openai["usage"]["prompt_tokens"] == whole.prompt_eval_count


def test_streaming_is_what_http_says_by_default(daemon, name):
    status, headers, body = daemon.request("POST", "/api/chat", {"model": name, "messages": ASK, "options": SHORT})
    assert status == 200 and headers["Content-Type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in body.decode().splitlines()]
    assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]


def test_a_prompt_is_what_the_user_says(client, name):
    chat = client.chat(name, [{"role": "system", "content": "Be brief."}, *ASK], options=SHORT)
    whole = client.generate(name, ASK[0]["content"], system="Be brief.", options=SHORT)
    streamed, parts = text_of(client.generate(name, ASK[0]["content"], system="Be brief.", options=SHORT, stream=True), chat=False)
    assert chat.message.content == whole.response == streamed
    assert parts[-1].context == whole.context and len(whole.context) == whole.prompt_eval_count + whole.eval_count


def test_a_raw_prompt_is_read_as_it_is(client, name, daemon):
    raw = client.generate(name, "Once upon a time", raw=True, options=SHORT)
    assert raw.response == daemon.complete("Once upon a time", max_tokens=12)["choices"][0]["text"]
    assert raw.context is None


def test_an_asynchronous_client(daemon, name):
    async def ask():
        client = ollama.AsyncClient(host=daemon.url)
        whole = await client.chat(name, ASK, options=SHORT)
        parts = [part async for part in await client.chat(name, ASK, options=SHORT, stream=True)]
        both = await asyncio.gather(client.generate(name, "Hello", options=SHORT), client.list())
        return whole, parts, both

    whole, parts, (generated, listed) = asyncio.run(ask())
    assert "".join(part.message.content for part in parts) == whole.message.content
    assert generated.done and [model.model for model in listed.models] == [name + ":latest"]


def test_options_change_what_they_say(client, name):
    def say(**options):
        return client.generate(name, "Write a story about a fox.", options={"num_predict": 12, **options})

    greedy = say(temperature=0).response
    drawn = [say(seed=seed, temperature=1.5).response for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2] and greedy not in drawn
    for only_likeliest in ({"top_k": 1}, {"top_p": 0}, {"min_p": 1}):
        assert say(temperature=1.5, seed=1, **only_likeliest).response == greedy
    for penalty in ({"repeat_penalty": 1.8}, {"presence_penalty": 2}, {"frequency_penalty": 2}):
        assert say(temperature=0, **penalty).response != greedy
        assert say(temperature=0, repeat_last_n=0, **penalty).response == greedy
    three = say(temperature=0, num_predict=3)
    assert three.eval_count == 3 and three.done_reason == "length" and greedy.startswith(three.response)
    middle = greedy[10:16]
    stopped = say(temperature=0, stop=[middle])
    assert stopped.done_reason == "stop" and stopped.response == greedy[:greedy.index(middle)]
    # Options that say how a model is loaded change nothing.
    assert say(temperature=0, num_ctx=512, num_gpu=99, num_thread=3, use_mmap=False, num_keep=4, mirostat=0).response == greedy


def test_a_format_is_kept_to(client, name):
    class Forecast(pydantic.BaseModel):
        city: Literal["Oslo", "Rome"]
        sunny: bool
        month: Literal[1, 2, 3]

    reply = client.chat(name, [{"role": "user", "content": "Weather in Oslo?"}], format=Forecast.model_json_schema(),
                        options={"temperature": 0, "num_predict": 100})
    Forecast.model_validate_json(reply.message.content)
    reply = client.generate(name, "Weather in Oslo, as JSON", format="json", options={"temperature": 0, "num_predict": 40})
    assert reply.response.lstrip().startswith("{")
    if reply.done_reason == "stop":
        assert isinstance(json.loads(reply.response), dict)


def test_log_probabilities(client, name):
    reply = client.chat(name, ASK, options=SHORT, logprobs=True, top_logprobs=3)
    assert len(reply.logprobs) == 12
    for one in reply.logprobs:
        assert one.logprob <= 0 and len(one.top_logprobs) == 3
        assert one.token == one.top_logprobs[0].token  # greedy: the likeliest token is chosen
    _, parts = text_of(client.generate(name, "Hello", options=SHORT, logprobs=True, stream=True), chat=False)
    assert sum(len(part.logprobs or []) for part in parts) == parts[-1].eval_count > 0


def test_a_context_goes_on(client, name, daemon):
    first = client.generate(name, "My name is Ada.", options=SHORT)
    second = client.generate(name, "What is my name?", context=first.context, options=SHORT)
    alone = client.generate(name, "What is my name?", options=SHORT)
    assert second.context[:len(first.context)] == first.context
    assert second.prompt_eval_count == len(first.context) + alone.prompt_eval_count
    prompt = second.context[:second.prompt_eval_count]
    assert second.response == daemon.complete(prompt, max_tokens=12)["choices"][0]["text"]
    with pytest.raises(ollama.ResponseError) as refused:
        client.generate(name, "What is my name?", context=[10**8])
    assert refused.value.status_code == 400 and "`context[0]`" in refused.value.error


def test_what_is_served(client, name, daemon):
    (model,) = client.list().models
    assert model.model == name + ":latest" and model.size > 50_000_000 and len(model.digest) == 64
    assert model.details.format == "gguf" and model.details.family == "llama" and model.details.quantization_level
    shown = client.show(name)
    assert shown.modelinfo["general.architecture"] == "llama" and shown.modelinfo["llama.context_length"] == 8192
    assert shown.capabilities == ["completion"] and "<|im_start|>" in shown.template
    assert shown.details == model.details and "temperature" in shown.parameters and "FROM" in shown.modelfile
    (running,) = client.ps().models
    assert running.model == model.model and running.digest == model.digest and running.size_vram == 0
    assert running.expires_at.year > 2900 and running.context_length == 8192
    version = json.loads(daemon.request("GET", "/api/version")[2])["version"]
    assert [int(part) for part in version.split(".")] >= [0, 6, 4]  # VS Code requires this version
    assert daemon.request("HEAD", "/")[0] == daemon.request("HEAD", "/api/tags")[0] == 200
    assert client.pull(name).status == "success"
    assert [part.status for part in client.pull(name + ":latest", stream=True)] == ["success"]


def test_a_model_is_loaded_and_stays(client, name):
    assert client.generate(name).done_reason == "load"
    assert client.chat(name).done_reason == "load"
    assert client.generate(name, keep_alive=0).done_reason == "unload"
    assert client.chat(name, [], keep_alive="0s").done_reason == "unload"
    assert len(client.ps().models) == 1
    (only,) = client.chat(name, stream=True)
    assert only.done and only.done_reason == "load"


def test_a_sleeping_model_is_loaded_by_a_request_without_a_prompt(start_daemon):
    daemon = start_daemon("models.a.path=dummy:null", "models.b.path=dummy:null")
    client = ollama.Client(host=daemon.url)
    assert [model.model for model in client.list().models] == ["a:latest", "b:latest"]
    before = {model.model for model in client.ps().models}
    for model in "ab":
        assert client.generate(model).done_reason == "load"
    assert {model.model for model in client.ps().models} == {"a:latest", "b:latest"} >= before


def test_errors_are_the_packages_own(client, name):
    def refused(call, *arguments, **fields):
        with pytest.raises(ollama.ResponseError) as raised:
            answer = call(*arguments, **fields)
            if fields.get("stream"):
                list(answer)
        return raised.value.status_code, raised.value.error

    assert refused(client.chat, "llama3", ASK)[0] == 404
    assert refused(client.chat, "llama3", ASK, stream=True)[0] == 404
    assert refused(client.show, "llama3")[0] == 404
    assert refused(client.pull, "llama3")[0] == 404
    assert refused(client.chat, name, ASK, options={"temperature": "hot"}) == (
        400, '`options.temperature` must be a number, got "hot"')
    assert refused(client.chat, name, ASK, options={"mirostat": 2}, stream=True)[0] == 400
    assert "`suffix`" in refused(client.generate, name, "def f(", suffix="return")[1]
    assert "`messages[0].images`" in refused(client.chat, name, [{"role": "user", "content": "x", "images": [b"png"]}])[1]
    assert "`format`" in refused(client.chat, name, ASK, format={"type": "nonsense"})[1]
    for call in (lambda: client.create("mine", from_=name), lambda: client.copy(name, "mine"), lambda: client.delete(name),
                 lambda: client.push(name)):
        assert refused(call)[0] == 403


def test_what_is_too_long_is_cut(start_daemon, scripted_model):
    daemon = start_daemon(model=scripted_model(["One", " two", "."], chat_template=TOOLS_TEMPLATE, context=256))
    client, name = ollama.Client(host=daemon.url), daemon.model()
    turns = []
    for number in range(20):
        turns += [{"role": "user", "content": f"Question {number}?"}, {"role": "assistant", "content": "Yes."}]
    asked = {"model": name, "messages": turns + ASK, "stream": False}
    alone, cut = client.chat(name, ASK), client.chat(name, turns + ASK)
    assert cut.message.content == "One two." and alone.prompt_eval_count < 224 - 50 < cut.prompt_eval_count <= 224
    # The package has no `truncate` for chats.
    status, whole = daemon.post("/api/chat", {**asked, "truncate": False})
    assert status == 400 and "context limit" in whole["error"]
    # `num_predict` does not require room for so many tokens, and a raw prompt, which has no turns, loses its beginning.
    assert client.chat(name, ASK, options={"num_predict": 10**9}).message.content == "One two."
    raw = client.generate(name, "word " * 500, raw=True)
    assert raw.prompt_eval_count == 224 and raw.response == "One two."
    status, whole = daemon.post("/api/generate", {"model": name, "prompt": "word " * 500, "raw": True, "truncate": False})
    assert status == 400 and "context limit" in whole["error"]


def test_a_stream_that_is_closed_ends_its_request(client, name, daemon):
    stream = client.chat(name, ASK, stream=True, options={"num_predict": 4000, "stop": []})
    next(stream)
    daemon.wait_metric("twill_num_requests_running", 1)
    stream.close()
    daemon.wait_metric("twill_num_requests_running", 0)


def test_keys_are_sent_as_headers(start_daemon):
    daemon = start_daemon('server.api_keys=["secret"]', model="dummy:null")
    with pytest.raises(ollama.ResponseError) as refused:
        ollama.Client(host=daemon.url).list()
    assert refused.value.status_code == 401 and "Authorization" in refused.value.error
    client = ollama.Client(host=daemon.url, headers={"Authorization": "Bearer secret"})
    (model,) = client.list().models
    assert client.generate(model.model, "x", options={"num_predict": 2}).eval_count == 2


def look(city: str, days: int = 1) -> str:
    """Look at the weather.

    Args:
        city: where
        days: how many
    """
    return f"rain in {city}"


def test_tools_are_called_and_answered(start_daemon, scripted_model):
    pieces = ["Well.", "<tool_call>", '{"name": "look", "arguments": {"city": "Oslo", ', '"days": 2}}', "</tool_call>",
              "<tool_call>", '{"name": "look", "arguments": {"city": "Rome"}}', "</tool_call>"]
    daemon = start_daemon(model=scripted_model(pieces, chat_template=TOOLS_TEMPLATE, added=["<tool_call>", "</tool_call>"]))
    client, name = ollama.Client(host=daemon.url), daemon.model()
    assert client.show(name).capabilities == ["completion", "tools", "thinking"]
    ask = [{"role": "user", "content": "Weather?"}]
    whole = client.chat(name, ask, tools=[look])
    calls = whole.message.tool_calls
    assert [(c.function.name, c.function.arguments) for c in calls] == [("look", {"city": "Oslo", "days": 2}), ("look", {"city": "Rome"})]
    assert whole.message.content.strip() == "Well." and whole.done_reason == "stop"
    parts = list(client.chat(name, ask, tools=[look], stream=True))
    assert [c.function.arguments for part in parts for c in part.message.tool_calls or []] == [c.function.arguments for c in calls]

    # The whole conversation goes back as the package writes it, results with the name of their tool alone.
    ask.append(whole.message)
    ask += [{"role": "tool", "tool_name": c.function.name, "content": look(**c.function.arguments)} for c in calls]
    status, told = daemon.post("/v1/chat/completions/render", {"messages": ask[:1]})
    assert status == 200, told
    again = client.chat(name, ask, tools=[look])
    assert again.prompt_eval_count > whole.prompt_eval_count + 10
    # In a request without tools, calls are text.
    assert "<tool_call>" in client.chat(name, ask[:1]).message.content


def test_thinking_stands_apart(start_daemon, scripted_model):
    pieces = ["<think>", "Let me ", "see.", "</think>", "It is ", "blue."]
    daemon = start_daemon(model=scripted_model(pieces, chat_template=TOOLS_TEMPLATE, added=["<think>", "</think>"]))
    client, name = ollama.Client(host=daemon.url), daemon.model()
    for call, said in ((lambda **f: client.chat(name, ASK, **f), lambda r: (r.message.thinking, r.message.content)),
                       (lambda **f: client.generate(name, "x", **f), lambda r: (r.thinking, r.response))):
        thinking, content = said(call(think=True))
        assert (thinking.strip(), content.strip()) == ("Let me see.", "It is blue.")
        parts = [said(part) for part in call(think="high", stream=True)]
        assert "".join(t or "" for t, _ in parts).strip() == thinking.strip()
        assert "".join(c or "" for _, c in parts).strip() == content.strip()
        assert call(think=False).prompt_eval_count > call(think=True).prompt_eval_count


# Requests in the shapes that clients of Ollama send: Open WebUI's chats with every advanced parameter set, its titles and its loaded
# models; Continue's chats and completions; Zed's agent; LangChain's chats; `ollama run`.
BODIES = [
    ("/api/chat", {"model": "MODEL:latest", "stream": True, "messages": [
        {"role": "system", "content": "User Context:\n\n"}, {"role": "user", "content": "hi"}],
        "options": {"temperature": 0.8, "num_predict": 4, "num_ctx": 2048, "num_keep": 24, "num_batch": 512, "num_gpu": 0,
                    "num_thread": 2, "use_mmap": True, "use_mlock": False, "repeat_last_n": 64, "repeat_penalty": 1.1,
                    "mirostat": 0, "mirostat_eta": 0.1, "mirostat_tau": 5.0, "tfs_z": 1, "top_k": 40, "top_p": 0.9,
                    "min_p": 0.0, "seed": 0, "stop": ["<|stop|>"], "presence_penalty": 0.0, "frequency_penalty": 0.0},
        "keep_alive": "5m", "think": True, "session_id": "x", "chat_id": "y", "features": {"web_search": False}}),
    ("/api/chat", {"model": "MODEL:latest", "stream": False, "messages": [{"role": "user", "content": "### Task:\nA title."}],
                   "options": {"num_predict": 4}, "format": "json", "max_completion_tokens": 1000}),
    ("/api/chat", {"model": "MODEL:latest", "stream": True, "tools": [{"type": "function", "function": {
        "name": "search", "description": "", "parameters": {"type": "object", "properties": {}, "required": []}}}],
        "messages": [{"role": "user", "content": "hi"},
                     {"role": "assistant", "content": "", "tool_calls": [
                         {"index": 0, "id": "call_1", "function": {"name": "search", "arguments": {"q": "a"}}}]},
                     {"role": "tool", "content": "found", "tool_call_id": "call_1"}], "options": {"num_predict": 4}}),
    ("/api/generate", {"model": "MODEL", "prompt": "", "keep_alive": 0}),
    ("/api/chat", {"model": "MODEL", "raw": None, "keep_alive": 1800, "stream": True, "options": {
        "temperature": 0.5, "top_p": None, "top_k": None, "num_predict": 4, "stop": ["<|im_end|>", "</s>"], "num_ctx": 4096,
        "mirostat": None, "num_thread": None, "use_mmap": None, "min_p": None, "num_gpu": None},
        "messages": [{"role": "user", "content": "explain"}]}),
    ("/api/generate", {"model": "MODEL", "prompt": "<fim_prefix>def f(<fim_suffix>)<fim_middle>", "raw": True, "suffix": "",
                       "keep_alive": 1800, "stream": True, "options": {"temperature": 0.01, "num_predict": 4, "num_ctx": 4096,
                       "stop": ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "\n\n", "```"]}}),
    ("/api/chat", {"model": "MODEL", "stream": True, "keep_alive": -1, "think": None, "options": {
        "num_ctx": 8192, "num_predict": 4, "stop": [], "temperature": 1.0, "top_p": None},
        "tools": [{"type": "function", "function": {"name": "grep", "description": "d", "parameters": {
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"regex": {"type": "string"}}}}}],
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u", "images": None},
                     {"role": "assistant", "content": "", "images": None, "thinking": None, "tool_calls": [
                         {"id": "t1", "function": {"name": "grep", "arguments": {"regex": "x"}}}]},
                     {"role": "tool", "tool_name": "grep", "content": "none"}]}),
    ("/api/chat", {"model": "MODEL", "stream": True, "format": "", "tools": [], "think": None, "logprobs": None,
                   "keep_alive": None, "options": {"num_predict": 4, "seed": None, "num_ctx": None, "stop": None},
                   "messages": [{"role": "user", "content": "hi", "images": []}]}),
    ("/api/generate", {"model": "MODEL:latest", "prompt": "hi", "suffix": "", "system": "", "template": "", "context": None,
                       "format": "", "images": [], "options": {"num_predict": 4}, "raw": False, "stream": None}),
]


@pytest.mark.parametrize("path,body", BODIES)
def test_bodies_of_other_clients_are_taken(daemon, name, path, body):
    body = json.loads(json.dumps(body).replace("MODEL", name))
    status, _, text = daemon.request("POST", path, body)
    assert status == 200, text
    last = json.loads(text.decode().splitlines()[-1])
    assert last["done"] is True and last["model"] == body["model"] and "error" not in last


ODD = [None, True, -1, 0, 1e300, 0.5, 10**30, "", "json", "x" * 70_000, [], {}, [[[]]], [1] * 300, ["a"] * 200, 1 << 40, "5m",
       {"role": "tool", "content": ""}, {"function": {"name": "f"}}, {"type": "object", "properties": {"a": {"$ref": "#"}}}]


def places(tree):
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [(key, *rest) for key, part in inner for rest in [(), *places(part)]]


def put(tree, place, part):
    if not place:
        return part
    changed = dict(tree) if isinstance(tree, dict) else list(tree)
    changed[place[0]] = put(tree[place[0]], place[1:], part)
    return changed


def test_bodies_with_parts_exchanged_are_answered_or_refused(start_daemon, scripted_model):
    daemon = start_daemon(model=scripted_model(["One", " two", "."], chat_template=TOOLS_TEMPLATE, context=512))
    name, chance, seen = daemon.model(), random.Random(7), set()
    for _ in range(400):
        path, body = chance.choice(BODIES)
        body = json.loads(json.dumps(body).replace("MODEL", name))
        for _ in range(chance.randint(1, 3)):
            body = put(body, chance.choice(places(body)), chance.choice(ODD))
        status, _, text = daemon.request("POST", path, body)
        lines = [json.loads(line) for line in text.decode().splitlines()]
        seen.add(status)
        if status == 200:
            assert lines[-1].get("done") is True, lines[-1]
        else:
            assert status in (400, 404) and list(lines[0]) == ["error"] and isinstance(lines[0]["error"], str), (status, text)
    assert seen == {200, 400, 404}
