"""Schemas and tools through the official openai package: answers can be parsed, and loops of tool calls end."""

import json
from typing import Literal

import openai
import pydantic
import pytest


class Forecast(pydantic.BaseModel):
    city: Literal["Rome", "Oslo"]
    sunny: bool


WEATHER = {"name": "weather", "description": "The weather of a city.",
           "parameters": {"type": "object", "required": ["city"], "additionalProperties": False,
                          "properties": {"city": {"enum": ["Rome", "Oslo"]}}}}
CHAT_TOOLS = [{"type": "function", "function": WEATHER}]
FLAT_TOOLS = [{"type": "function", **WEATHER}]
ASK = [{"role": "user", "content": "What is the weather in Oslo?"}]


@pytest.fixture
def client(tool_daemon):
    return openai.OpenAI(base_url=tool_daemon.url + "/v1", api_key="none", max_retries=0, timeout=60)


@pytest.fixture
def model(client):
    return client.models.list().data[0].id


def is_weather_call(name, arguments):
    return name == "weather" and json.loads(arguments)["city"] in ("Rome", "Oslo")


def test_chat_parse_gives_the_pydantic_model(client, model):
    reply = client.chat.completions.parse(model=model, messages=ASK, response_format=Forecast, max_tokens=512)
    assert isinstance(reply.choices[0].message.parsed, Forecast)
    assert reply.choices[0].finish_reason == "stop"


def test_responses_parse_gives_the_pydantic_model(client, model):
    reply = client.responses.parse(model=model, input="Weather?", text_format=Forecast, max_output_tokens=512)
    assert isinstance(reply.output_parsed, Forecast)


def test_every_other_spelling_of_a_form_holds(client, model):
    def answer(**extra):
        return client.chat.completions.create(model=model, messages=ASK, max_tokens=512, temperature=1,
                                              extra_body=extra).choices[0].message.content
    assert answer(guided_choice=["yes", "no"]) in ("yes", "no")
    assert answer(structured_outputs={"regex": "[0-9]{3}-[a-c]"})[3] == "-"
    assert answer(grammar='root ::= "<" [xy] ">"') in ("<x>", "<y>")
    assert json.loads(answer(json_schema=Forecast.model_json_schema()))["sunny"] in (True, False)
    text = client.completions.create(model=model, prompt="Say yes or no:", max_tokens=8,
                                     extra_body={"structured_outputs": {"choice": ["yes", "no"]}})
    assert text.choices[0].text in ("yes", "no")
    elsewhere = {"type": "object", "properties": {"a": {"$ref": "http://elsewhere/x"}}}
    for field, form in (("guided_json", elsewhere), ("structured_outputs.json", {"json": elsewhere})):
        with pytest.raises(openai.BadRequestError) as refused:
            answer(**{field.partition(".")[0]: form})
        assert refused.value.param == field


def test_a_chat_loop_of_tools(client, model):
    first = client.chat.completions.create(model=model, messages=ASK, tools=CHAT_TOOLS, tool_choice="required",
                                           parallel_tool_calls=False, max_tokens=64, temperature=0)
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert message.content is None
    call = message.tool_calls[0]
    assert is_weather_call(call.function.name, call.function.arguments)
    history = ASK + [message, {"role": "tool", "tool_call_id": call.id, "content": "It rains."}]
    second = client.chat.completions.create(model=model, messages=history, tools=CHAT_TOOLS, tool_choice="none",
                                            max_tokens=16, temperature=0)
    assert second.choices[0].message.content
    assert not second.choices[0].message.tool_calls


def test_a_streamed_call_adds_up_to_the_whole(client, model):
    arguments = dict(model=model, messages=ASK, tools=CHAT_TOOLS, max_tokens=64, temperature=0,
                     tool_choice={"type": "function", "function": {"name": "weather"}})
    whole = client.chat.completions.create(**arguments).choices[0].message.tool_calls[0].function
    with client.chat.completions.stream(**arguments) as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_completion().choices[0].message.tool_calls[0]
    assert streamed.id.startswith("call_")
    assert (streamed.function.name, streamed.function.arguments) == (whole.name, whole.arguments)


def test_a_cut_call_is_never_text(client, model):
    """Wherever max_tokens cuts a required call, the answer has a call with the beginning of its arguments, and `length`."""
    choices = {"required": "required", "named": {"type": "function", "function": {"name": "weather"}}}
    for name, choice in choices.items():
        for n in (1, 2, 3, 5, 8, 11):
            arguments = dict(model=model, messages=ASK, tools=CHAT_TOOLS, tool_choice=choice, max_tokens=n,
                             temperature=0, parallel_tool_calls=False)
            reply = client.chat.completions.create(**arguments).choices[0]
            assert (reply.finish_reason, reply.message.content) == ("length", None), (name, n, reply)
            assert [c.function.name for c in reply.message.tool_calls] == ["weather"], (name, n, reply)
            streamed = list(client.chat.completions.create(stream=True, **arguments))
            deltas = [c.choices[0].delta for c in streamed if c.choices]
            assert not any(d.content for d in deltas), (name, n, deltas)
            pieces = [call.function for d in deltas for call in d.tool_calls or []]
            assert "".join(p.arguments or "" for p in pieces) == reply.message.tool_calls[0].function.arguments
            assert [p.name for p in pieces if p.name] == ["weather"]
        response = client.responses.create(model=model, input="Weather in Oslo?", tools=FLAT_TOOLS, temperature=0,
                                           tool_choice="required", max_output_tokens=4)
        assert (response.status, response.output_text) == ("incomplete", "")
        assert [(o.type, o.status) for o in response.output] == [("function_call", "incomplete")]


def test_tools_whose_schema_is_none_are_refused(client, model):
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "dict"}}}]
    for choice in ("auto", "required"):
        with pytest.raises(openai.BadRequestError) as refused:
            client.chat.completions.create(model=model, messages=ASK, tools=tools, tool_choice=choice)
        assert refused.value.param == "tools"
        assert "\"look\"" in refused.value.message and "dict" in refused.value.message
    # A valid schema that cannot be enforced still allows a tool to be called, without a constraint.
    tools[0]["function"]["parameters"] = {"type": "array", "unevaluatedItems": False}
    assert client.chat.completions.create(model=model, messages=ASK, tools=tools, max_tokens=4).choices
    with pytest.raises(openai.BadRequestError):
        client.chat.completions.create(model=model, messages=ASK, tools=tools, tool_choice="required")


def test_min_tokens_holds_where_a_form_may_go_on(client, model):
    def answer(**extra):
        return client.chat.completions.create(model=model, messages=ASK, max_tokens=40, temperature=1,
                                              extra_body={"min_tokens": 30, **extra})
    for more in ({}, {"ignore_eos": True}):
        free = answer(structured_outputs={"regex": "[a-z ]*"}, **more)
        assert free.usage.completion_tokens >= 30, free
    over = answer(guided_choice=["yes", "no"])  # after the choice the text must end
    assert over.choices[0].message.content in ("yes", "no")


def test_legacy_functions(client, model):
    message = client.chat.completions.create(model=model, messages=ASK, functions=[WEATHER], max_tokens=512,
                                             function_call={"name": "weather"}, temperature=0).choices[0].message
    assert is_weather_call(message.function_call.name, message.function_call.arguments)


def test_a_responses_loop_of_tools(client, model):
    arguments = dict(model=model, tools=FLAT_TOOLS, temperature=0)
    first = client.responses.create(input="Weather in Oslo?", tool_choice="required", max_output_tokens=512,
                                    parallel_tool_calls=False, **arguments)
    call = first.output[0]
    assert call.type == "function_call" and is_weather_call(call.name, call.arguments)
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "It rains."}
    second = client.responses.create(input=[result], previous_response_id=first.id, tool_choice="none",
                                     max_output_tokens=16, **arguments)
    assert second.output_text
    stateless = client.responses.create(input=[{"role": "user", "content": "Weather in Oslo?"}, *first.output, result],
                                        tool_choice="none", max_output_tokens=16, **arguments)
    assert stateless.output_text == second.output_text


def test_a_responses_websocket_loop_of_tools(client, model):
    def turn(connection, **fields):
        connection.response.create(model=model, tools=FLAT_TOOLS, temperature=0, **fields)
        seen = []
        for event in connection:
            seen.append(event)
            if event.type in ("response.completed", "response.incomplete", "response.failed", "error"):
                return seen

    with client.responses.connect() as connection:
        events = turn(connection, input="Weather in Oslo?", tool_choice="required", max_output_tokens=512, store=False,
                      parallel_tool_calls=False)
        deltas = "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta")
        done = [e for e in events if e.type == "response.function_call_arguments.done"]
        call = events[-1].response.output[0]
        assert deltas == done[0].arguments == call.arguments
        assert is_weather_call(call.name, call.arguments)
        events = turn(connection, previous_response_id=events[-1].response.id, tool_choice="none", store=False,
                      max_output_tokens=16,
                      input=[{"type": "function_call_output", "call_id": call.call_id, "output": "It rains."}])
        assert events[-1].response.output_text


def test_messages_as_clients_send_them(client, model):
    history = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        *ASK,
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
                                              "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "rain"}]},
    ]
    assert client.chat.completions.create(model=model, messages=history, max_tokens=4).choices[0].message.content
    with pytest.raises(openai.BadRequestError, match=r"messages\[1\]"):
        client.chat.completions.create(model=model, messages=[ASK[0], {"role": "wizard", "content": "x"}])
    with pytest.raises(openai.BadRequestError, match="web_search"):
        client.chat.completions.create(model=model, messages=ASK, tools=[{"type": "web_search"}])


def test_of_allowed_tools_others_are_not_called(client, model):
    time = {"name": "time", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}
    arguments = dict(model=model, messages=ASK, max_tokens=512, temperature=1)
    choice = {"type": "allowed_tools", "allowed_tools": {
        "mode": "required", "tools": [{"type": "function", "function": {"name": "time"}}]}}
    message = client.chat.completions.create(tools=[*CHAT_TOOLS, {"type": "function", "function": time}],
                                             tool_choice=choice, parallel_tool_calls=False,
                                             **arguments).choices[0].message
    assert [call.function.name for call in message.tool_calls] == ["time"]
    reply = client.responses.create(model=model, input="Weather?", max_output_tokens=512, parallel_tool_calls=False,
                                    tools=[*FLAT_TOOLS, {"type": "function", **time}],
                                    tool_choice={"type": "allowed_tools", "mode": "required",
                                                 "tools": [{"type": "function", "name": "time"}]})
    assert [item.name for item in reply.output] == ["time"]


def test_a_template_without_tools_is_told_of_them(daemon):
    """The default model's own template: it lists tools in the system message, and calls are JSON."""
    def text_of(**extra):
        tokens = daemon.post("/tokenize", {"messages": ASK, **extra})[1]["tokens"]
        return daemon.post("/detokenize", {"tokens": tokens})[1]["prompt"]

    assert '"name":"weather"' in text_of(tools=CHAT_TOOLS)
    assert text_of(tools=CHAT_TOOLS, tool_choice="none") == text_of()
    client = openai.OpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0, timeout=60)
    arguments = dict(model=daemon.model(), tools=CHAT_TOOLS, max_tokens=64, temperature=0)
    first = client.chat.completions.create(messages=ASK, tool_choice="required", parallel_tool_calls=False, **arguments)
    call = first.choices[0].message.tool_calls[0]
    assert is_weather_call(call.function.name, call.function.arguments)
    history = [*ASK, first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "It rains."}]
    assert client.chat.completions.create(messages=history, **arguments).choices[0].finish_reason
