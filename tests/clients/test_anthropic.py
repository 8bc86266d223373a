"""Anthropic's Messages API through the official anthropic package, unmodified, and bodies in the shape that coding agents send."""

import asyncio
import json
import pathlib

import anthropic
import pytest

ASK = [{"role": "user", "content": "What is the weather in Oslo?"}]
WEATHER = {"name": "weather", "description": "The weather of a city.",
           "input_schema": {"type": "object", "required": ["city"], "additionalProperties": False,
                            "properties": {"city": {"enum": ["Rome", "Oslo"]}}}}
TIME = {"name": "time", "description": "The time of day.",
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}}
THINKING_TEMPLATE = ("{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
                     "{% endif %}{{ m.content }}{% endfor %}<|assistant|>"
                     "{% if enable_thinking is defined and not enable_thinking %}<think></think>\n\n{% endif %}")


def client_of(daemon, **how):
    return anthropic.Anthropic(base_url=daemon.url, api_key="none", max_retries=0, timeout=60, **how)


def all_input(usage):
    return usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens


@pytest.fixture
def client(tool_daemon):
    return client_of(tool_daemon)


@pytest.fixture
def model(client):
    return client.models.list().data[0].id


@pytest.fixture
def greedy(model):
    return dict(model=model, extra_body={"temperature": 0})  # the package has no parameter `temperature` any more


def test_a_whole_message(client, greedy):
    message = client.messages.create(messages=ASK, system="Answer in one word.", max_tokens=12, **greedy)
    assert message.id.startswith("msg_") and (message.type, message.role) == ("message", "assistant")
    assert message.model == greedy["model"]
    assert [block.type for block in message.content] == ["text"] and message.content[0].text
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert 0 < message.usage.output_tokens <= 12
    repeated = client.messages.create(messages=ASK, system="Answer in one word.", max_tokens=12, **greedy)
    assert repeated.content == message.content
    assert repeated.usage.cache_read_input_tokens > 0  # cached tokens are not counted twice
    assert all_input(repeated.usage) == all_input(message.usage)


def test_a_stream_adds_up_to_the_whole_message(client, greedy):
    asked = dict(messages=ASK, max_tokens=24, **greedy)
    whole = client.messages.create(**asked)
    events = list(client.messages.create(stream=True, **asked))
    assert [event.type for event in events if event.type != "content_block_delta"] == [
        "message_start", "content_block_start", "content_block_stop", "message_delta", "message_stop"]
    assert "".join(e.delta.text for e in events if e.type == "content_block_delta") == whole.content[0].text
    with client.messages.stream(**asked) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert (final.stop_reason, final.stop_sequence, final.role) == (whole.stop_reason, None, "assistant")
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert all_input(final.usage) == all_input(whole.usage)


def test_counted_tokens_are_those_of_the_usage(client, greedy):
    requests = [
        dict(messages=ASK),
        dict(messages=ASK, system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]),
        dict(messages=ASK, tools=[WEATHER, TIME]),
        dict(messages=[*ASK, {"role": "assistant", "content": "It is"}]),
        dict(messages=[*ASK, {"role": "assistant", "content": [
            {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}]}],
            tools=[WEATHER]),
    ]
    counts = []
    for request in requests:
        counts.append(client.messages.count_tokens(model=greedy["model"], **request).input_tokens)
        assert counts[-1] == all_input(client.messages.create(max_tokens=1, **request, **greedy).usage)
    assert len(set(counts)) == len(counts)


def test_a_stop_sequence_ends_a_message_and_is_named(client, greedy):
    text = client.messages.create(messages=ASK, max_tokens=24, **greedy).content[0].text
    word = text.split()[2]
    for stream in (False, True):
        if stream:
            with client.messages.stream(messages=ASK, max_tokens=24, stop_sequences=["~~", word], **greedy) as events:
                cut = events.get_final_message()
        else:
            cut = client.messages.create(messages=ASK, max_tokens=24, stop_sequences=["~~", word], **greedy)
        assert (cut.stop_reason, cut.stop_sequence) == ("stop_sequence", word)
        assert text.startswith(cut.content[0].text) and word not in cut.content[0].text


def test_an_answer_goes_on_from_what_the_client_began(client, greedy):
    begun = [*ASK, {"role": "assistant", "content": "The weather in Oslo is"}]
    more = client.messages.create(messages=begun, max_tokens=8, **greedy).content[0].text
    assert more.startswith(" ")
    again = [*ASK, {"role": "assistant", "content": "The weather in Oslo is" + more}]
    if not more[-1].isspace():
        assert client.messages.create(messages=again, max_tokens=4, **greedy).usage.output_tokens > 0
    with pytest.raises(anthropic.BadRequestError, match=r"messages\[1\].content"):
        client.messages.create(messages=[*ASK, {"role": "assistant", "content": "It is "}], max_tokens=8, **greedy)


def test_tools_that_must_be_called_are(client, greedy):
    one = {"disable_parallel_tool_use": True}
    for choice, names in (({"type": "any", **one}, ("weather", "time")), ({"type": "tool", "name": "weather", **one}, ("weather",))):
        asked = dict(messages=ASK, tools=[WEATHER, TIME], tool_choice=choice, max_tokens=200, **greedy)
        message = client.messages.create(**asked)
        assert (message.stop_reason, [block.type for block in message.content]) == ("tool_use", ["tool_use"])
        call = message.content[0]
        assert call.name in names and call.id.startswith("toolu_")
        assert call.input.get("city") in ("Rome", "Oslo") if call.name == "weather" else call.input == {}
        with client.messages.stream(**asked) as stream:
            final = stream.get_final_message()
        assert (final.content[0].name, final.content[0].input, final.stop_reason) == (call.name, call.input, "tool_use")


def test_a_loop_of_tools(client, greedy):
    asked = dict(tools=[WEATHER], max_tokens=200, **greedy)
    first = client.messages.create(messages=ASK, tool_choice={"type": "tool", "name": "weather"}, **asked)
    call = first.content[0]
    for result in ("It rains.", [{"type": "text", "text": "It rains."}]):
        history = [*ASK, first.to_param(), {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call.id, "content": result}, {"type": "text", "text": "So?"}]}]
        second = client.messages.create(messages=history, tool_choice={"type": "none"}, **{**asked, "max_tokens": 8})
        assert second.content[0].type == "text"


def test_a_call_that_max_tokens_cuts(client, greedy):
    for n in (1, 4, 9, 12):
        asked = dict(messages=ASK, tools=[WEATHER], tool_choice={"type": "any", "disable_parallel_tool_use": True},
                     max_tokens=n, **greedy)
        cut = client.messages.create(**asked)
        assert cut.stop_reason == "max_tokens"
        assert all(block.type == "tool_use" and block.input in ({}, {"city": "Oslo"}, {"city": "Rome"}) for block in cut.content)
        with client.messages.stream(**asked) as stream:  # the package parses the incomplete input after each event
            final = stream.get_final_message()
        assert [block.type for block in final.content] == [block.type for block in cut.content]


def test_an_answer_in_a_given_form(client, greedy):
    schema = {"type": "object", "required": ["city"], "additionalProperties": False,
              "properties": {"city": {"enum": ["Rome", "Oslo"]}}}
    message = client.messages.create(messages=ASK, max_tokens=200, **greedy,
                                     output_config={"format": {"type": "json_schema", "schema": schema}, "effort": "low"})
    assert json.loads(message.content[0].text)["city"] in ("Rome", "Oslo")


def test_max_tokens_beyond_the_context_is_a_bound(start_daemon):
    client = client_of(start_daemon(model="dummy:null"))
    with client.messages.stream(model="null", messages=ASK, max_tokens=64000) as stream:
        message = stream.get_final_message()
    assert message.stop_reason in ("end_turn", "model_context_window_exceeded")
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        client.messages.create(model="null", messages=[{"role": "user", "content": "word " * 9000}], max_tokens=5)
    warmed = client.messages.create(model="null", messages=ASK, max_tokens=0)
    assert (warmed.content, warmed.usage.output_tokens, warmed.stop_reason) == ([], 0, "max_tokens")


def test_thinking(start_daemon, scripted_model):
    pieces = ["<think>", "\n", "Hm, ", "two.", "\n", "</think>", "\n\n", "It is", " 2."]
    daemon = start_daemon(model=scripted_model(pieces, added=["<think>", "</think>"], chat_template=THINKING_TEMPLATE))
    client = client_of(daemon)
    asked = dict(model="any", messages=[{"role": "user", "content": "1+1?"}], max_tokens=2000)
    asked["model"] = client.models.list().data[0].id

    def both(**thinking):
        whole = client.messages.create(**asked, **thinking)
        with client.messages.stream(**asked, **thinking) as stream:
            final = stream.get_final_message()
        kinds = [(b.type, b.thinking if b.type == "thinking" else b.text) for b in whole.content]
        assert [(b.type, b.thinking if b.type == "thinking" else b.text) for b in final.content] == kinds
        assert all(b.signature for m in (whole, final) for b in m.content if b.type == "thinking")
        assert whole.stop_reason == final.stop_reason == "end_turn"
        return whole, kinds

    shown = [("thinking", "Hm, two.\n"), ("text", "It is 2.")]
    whole, kinds = both(thinking={"type": "enabled", "budget_tokens": 1024})
    assert kinds == shown
    assert 0 < whole.usage.output_tokens_details.thinking_tokens < whole.usage.output_tokens
    assert both(thinking={"type": "adaptive", "display": "omitted"})[1] == [("thinking", ""), shown[1]]
    assert both()[1] == shown
    assert both(thinking={"type": "disabled"})[1] == shown[1:]

    # The template gets the setting, and earlier thoughts.
    def count(**more):
        return client.messages.count_tokens(**{**{k: asked[k] for k in ("model", "messages")}, **more}).input_tokens

    assert count(thinking={"type": "disabled"}) > count() == count(thinking={"type": "adaptive"})
    history = [*asked["messages"], whole.to_param(), {"role": "user", "content": "Sure?"}]
    without = [*asked["messages"], {"role": "assistant", "content": [whole.content[1].to_dict()]}, history[-1]]
    assert count(messages=history) > count(messages=without)


def test_errors_are_the_exceptions_of_the_sdk(client, greedy, start_daemon):
    def refused(kind, status, of=client, **request):
        with pytest.raises(kind) as error:
            of.messages.create(**{**dict(messages=ASK, max_tokens=4), **greedy, **request})
        body = error.value.body
        assert error.value.status_code == status and body["type"] == "error"
        assert body["request_id"] == error.value.request_id == error.value.response.headers["request-id"]
        return body["error"]

    assert refused(anthropic.NotFoundError, 404, model="claude-of-old")["type"] == "not_found_error"
    image = [{"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}]}]
    error = refused(anthropic.BadRequestError, 400, messages=image)
    assert error["type"] == "invalid_request_error" and "`messages[0].content[0].type`" in error["message"]
    error = refused(anthropic.BadRequestError, 400, tools=[{"type": "web_search_20250305", "name": "web_search"}])
    assert "web_search_20250305" in error["message"]
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        list(client.messages.create(stream=True, messages=ASK, max_tokens=4, model=greedy["model"], extra_body={"temperature": -1}))
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-of-old")

    guarded = start_daemon("server.api_keys=['twk_abcdefghijklmnopqrstuvwxyz']", "server.max_body=64KiB", model="dummy:null")
    wrong = refused(anthropic.AuthenticationError, 401, of=client_of(guarded), model="null")
    assert wrong["type"] == "authentication_error"
    by_key = anthropic.Anthropic(base_url=guarded.url, api_key="twk_abcdefghijklmnopqrstuvwxyz", max_retries=0)
    by_token = anthropic.Anthropic(base_url=guarded.url, auth_token="twk_abcdefghijklmnopqrstuvwxyz", max_retries=0)
    for known in (by_key, by_token):
        assert known.messages.create(model="null", messages=ASK, max_tokens=2).usage.output_tokens == 2
    large = [{"role": "user", "content": "x" * 70_000}]
    with pytest.raises(anthropic.APIStatusError) as error:
        by_key.messages.create(model="null", messages=large, max_tokens=4)
    assert (error.value.status_code, error.value.body["error"]["type"]) == (413, "request_too_large")
    status, _, text = guarded.request("POST", "/v1/messages/batches", {}, headers={"x-api-key": "twk_abcdefghijklmnopqrstuvwxyz"})
    assert (status, json.loads(text)["error"]["type"]) == (404, "not_found_error")


def test_lists_of_models_are_of_whoever_asks(start_daemon):
    daemon = start_daemon("models.a.path=dummy:null", "models.b.path=dummy:null", "models.c.path=dummy:null",
                          "models.b.aliases=['claude-some']")
    client = client_of(daemon)
    assert [model.id for model in client.models.list()] == ["a", "b", "c"]
    assert [model.id for model in client.models.list(limit=2)] == ["a", "b", "c"]  # the list comes in two pages
    assert [model.id for model in client.models.list(limit=1, before_id="c").data] == ["b"]
    found = client.models.retrieve("claude-some")
    assert (found.id, found.type, found.display_name) == ("b", "model", "b") and found.created_at.year >= 2026
    assert client.messages.create(model="claude-some", messages=ASK, max_tokens=1).model == "b"
    assert json.loads(daemon.request("GET", "/v1/models")[2])["object"] == "list"  # OpenAI's form of the list


def test_the_async_client(tool_daemon, greedy):
    async def turns():
        async with anthropic.AsyncAnthropic(base_url=tool_daemon.url, api_key="none", max_retries=0) as client:
            asked = dict(messages=ASK, max_tokens=8, **greedy)
            whole, again = await asyncio.gather(client.messages.create(**asked), client.messages.create(**asked))
            assert whole.content == again.content
            async with client.messages.stream(**asked) as stream:
                assert (await stream.get_final_message()).content[0].text == whole.content[0].text
            return [model.id async for model in client.models.list()]

    assert asyncio.run(turns()) == [greedy["model"]]


def test_a_stream_that_is_left_frees_its_request(client, greedy, tool_daemon):
    stream = client.messages.create(messages=ASK, max_tokens=4000, stream=True, model=greedy["model"], extra_body={"ignore_eos": True})
    for event in stream:
        if event.type == "content_block_delta":
            break
    stream.close()
    tool_daemon.wait_metric("twill_num_requests_running", 0)
    tool_daemon.check_ledger()


# --- coding agents -------------------------------------------------------------------------------

AGENT_TOOLS = {
    "Task": {"description": "string", "prompt": "string", "subagent_type": "string"},
    "Bash": {"command": "string", "timeout": "number", "description": "string", "run_in_background": "boolean"},
    "Glob": {"pattern": "string", "path": "string"},
    "Grep": {"pattern": "string", "path": "string", "glob": "string", "-i": "boolean", "head_limit": "number"},
    "LS": {"path": "string", "ignore": "array"},
    "Read": {"file_path": "string", "offset": "number", "limit": "number"},
    "Edit": {"file_path": "string", "old_string": "string", "new_string": "string", "replace_all": "boolean"},
    "MultiEdit": {"file_path": "string", "edits": "array"},
    "Write": {"file_path": "string", "content": "string"},
    "NotebookEdit": {"notebook_path": "string", "cell_id": "string", "new_source": "string"},
    "WebFetch": {"url": "string", "prompt": "string"},
    "TodoWrite": {"todos": "array"},
    "WebSearch": {"query": "string", "allowed_domains": "array"},
    "BashOutput": {"bash_id": "string", "filter": "string"},
    "KillShell": {"shell_id": "string"},
    "ExitPlanMode": {"plan": "string"},
}
ITEMS = {"type": "object", "additionalProperties": False, "required": ["content", "status"], "properties": {
    "content": {"type": "string", "minLength": 1}, "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}}}
REMINDER = "<system-reminder>\nThe task list is empty. Do not mention this.\n</system-reminder>"
AGENT_HEADERS = {
    "anthropic-version": "2023-06-01", "authorization": "Bearer none", "x-app": "cli", "user-agent": "claude-cli/2.0.0 (external, cli)",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27",
    "anthropic-dangerous-direct-browser-access": "true", "x-stainless-lang": "js", "x-stainless-retry-count": "0",
}


def agent_tool(name, properties):
    def schema(kind):
        return {"type": "array", "items": ITEMS} if kind == "array" else {"type": kind, "description": f"A {kind} of {name}."}
    return {"name": name, "description": f"{name}: " + "use it only where it fits, and say why before. " * 3,
            "input_schema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
                             "properties": {key: schema(kind) for key, kind in properties.items()},
                             "required": list(properties)[:1], "additionalProperties": False}}


def agent_body(turns, **more):
    tools = [agent_tool(name, properties) for name, properties in AGENT_TOOLS.items()]
    ephemeral = {"cache_control": {"type": "ephemeral"}}
    return {"model": "claude-agent", "max_tokens": 32000, "stream": True, "temperature": 1, "tools": tools,
            "system": [{"type": "text", "text": "You are a coding agent, a command line tool.", **ephemeral},
                       {"type": "text", "text": "# Tone\nBe concise.\n\n# Environment\nWorking directory: /work\n" * 5, **ephemeral}],
            "metadata": {"user_id": "user_" + "0a" * 32 + "_account__session_00000000-0000-4000-8000-000000000000"},
            "thinking": {"type": "enabled", "budget_tokens": 31999},
            "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "messages": turns, **more}


FIRST_TURN = [{"role": "user", "content": [
    {"type": "text", "text": REMINDER}, {"type": "text", "text": "Fix the test.", "cache_control": {"type": "ephemeral"}}]}]
LATER_TURNS = [
    *FIRST_TURN,
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "I should look at it first.", "signature": "sig_0"},
        {"type": "text", "text": "I look at the test."},
        {"type": "tool_use", "id": "toolu_a", "name": "Read", "input": {"file_path": "/project/test.py"}},
        {"type": "tool_use", "id": "toolu_b", "name": "Bash", "input": {"command": "pytest -q", "timeout": 60000}}]},
    {"role": "user", "content": [
        {"tool_use_id": "toolu_a", "type": "tool_result", "content": "     1\tassert 1 + 1 == 3\n"},
        {"tool_use_id": "toolu_b", "type": "tool_result", "content": "Exit code 1\nFAILED test.py", "is_error": True},
        {"type": "text", "text": REMINDER, "cache_control": {"type": "ephemeral"}}]},
    {"role": "system", "content": "The user has opened test.py."},
    {"role": "user", "content": "Go on."},
]


def agent_exchange(daemon, body):
    status, headers, text = daemon.request("POST", "/v1/messages?beta=true", body, headers=AGENT_HEADERS)
    assert status == 200, text
    assert headers["Content-Type"].startswith("text/event-stream") and headers["request-id"]
    events = [block.split("\ndata: ", 1) for block in text.decode().strip().split("\n\n")]
    names, data = [name.removeprefix("event: ") for name, _ in events], [json.loads(one) for _, one in events]
    assert names == [one["type"] for one in data]
    assert (names[0], names[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert data[-2]["context_management"] == {"applied_edits": []}
    return data


def test_what_a_coding_agent_sends_is_answered(start_daemon):
    template = pathlib.Path(__file__).resolve().parent / "tools.jinja"
    daemon = start_daemon("models.null.path=dummy:null", f"models.null.chat_template={template}", "models.null.tool_format=hermes",
                          "models.null.aliases=['claude-agent', 'claude-small-agent']")
    client = anthropic.Anthropic(base_url=daemon.url, auth_token="none", max_retries=0)
    for turns in (FIRST_TURN, LATER_TURNS):
        for thinking in ({"type": "enabled", "budget_tokens": 31999}, {"type": "adaptive"}, {"type": "disabled"}):
            body = agent_body(turns, thinking=thinking, max_tokens=40)
            data = agent_exchange(daemon, body)
            usage = data[-2]["usage"]
            counted = client.beta.messages.count_tokens(**{k: body[k] for k in ("model", "messages", "system", "tools", "thinking")})
            assert counted.input_tokens == usage["input_tokens"] + usage["cache_read_input_tokens"] > 1000
            assert data[-2]["delta"]["stop_reason"] in ("max_tokens", "end_turn")
    # A `max_tokens` beyond the context, which agents send; and requests that they send at their start, or for a title.
    assert agent_exchange(daemon, agent_body(LATER_TURNS))[-2]["usage"]["output_tokens"] > 0
    quota = {"model": "claude-small-agent", "max_tokens": 1, "messages": [{"role": "user", "content": "quota"}],
             "metadata": {"user_id": "user_0"}}
    assert daemon.post("/v1/messages?beta=true", quota, headers=AGENT_HEADERS)[1]["usage"]["output_tokens"] == 1
    title = {**agent_body(FIRST_TURN), "tools": [], "max_tokens": 512, "model": "claude-small-agent", "temperature": 0,
             "output_config": {"format": {"type": "json_schema", "schema": {
                 "type": "object", "properties": {"title": {"type": "string", "maxLength": 20}}, "required": ["title"],
                 "additionalProperties": False}}}}
    data = agent_exchange(daemon, title)
    text = "".join(one["delta"]["text"] for one in data if one["type"] == "content_block_delta")
    assert data[-2]["delta"]["stop_reason"] == "end_turn" and list(json.loads(text)) == ["title"]
    forced = agent_body(LATER_TURNS, tool_choice={"type": "tool", "name": "KillShell", "disable_parallel_tool_use": True})
    data = agent_exchange(daemon, forced)
    calls = [one["content_block"] for one in data if one["type"] == "content_block_start"]
    assert [call["name"] for call in calls] == ["KillShell"]
