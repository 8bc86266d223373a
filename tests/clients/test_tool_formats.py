"""Tool calls in every format that twilld reads, from models whose output is known: name, id and arguments reach the client."""

import json
import re

import openai
import pytest

NUMBERS = '{"n": 123456789012345678901234567890, "m": -18446744073709551616, "x": 1.50, "t": "caf\u00e9 \\"\\u00e9"}'
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("look", "now")]
FLAT = [{"type": "function", **tool["function"]} for tool in TOOLS]
ASK = [{"role": "user", "content": "What is there?"}]


def template(call: str) -> str:
    return ("{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
            "{% for c in m.tool_calls or [] %}" + call + "{% endfor %}<|im_end|>{% endfor %}<|im_start|>assistant\n")


HERMES = template('<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>')
MISTRAL_LIST = template('[TOOL_CALLS] [{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}]')
MISTRAL_BARE = template("{% if c.id | length != 9 %}{{ raise_exception('length 9') }}{% endif %}"
                        "[TOOL_CALLS]{{ c.function.name }}[CALL_ID]{{ c.id }}[ARGS]{{ c.function.arguments + '' }}")
LLAMA = template('<|python_tag|>{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}')
GLM = template("<|observation|>{{ c.function.name }}\n{{ c.function.arguments | tojson }}")
PLAIN = template('{{ {"name": c.function.name, "arguments": c.function.arguments} | tojson }}')

# Format: template, parts of the output, the text before the calls, and for each call its name, arguments and id; where the model
# writes no id, the server makes one.
FORMATS = {
    "hermes": (HERMES, ["Well. ", "<tool_call>", '\n{"name": "look", "arguments": ' + NUMBERS + "}\n", "</tool_call>", "\n",
                        "<tool_call>", '{"name": "now", "arguments": {}}', "</tool_call>"],
               "Well.", [("look", NUMBERS, None), ("now", "{}", None)]),
    "mistral, a list": (MISTRAL_LIST, ["Well.", "[TOOL_CALLS]", ' [{"name": "look", "arguments": ' + NUMBERS
                                       + '}, {"name": "now", "arguments": {}}]'],
                        "Well.", [("look", NUMBERS, None), ("now", "{}", None)]),
    "mistral, names": (MISTRAL_BARE, ["[TOOL_CALLS]", "look", "[CALL_ID]", "abc123xyz", "[ARGS]", NUMBERS, "[TOOL_CALLS]", "now",
                                      "[ARGS]", "{}", "[TOOL_CALLS]", "now", "[CALL_ID]", "D4e5F6g7H", "[ARGS]", '{"a": []}'],
                       "", [("look", NUMBERS, "abc123xyz"), ("now", "{}", None), ("now", '{"a": []}', "D4e5F6g7H")]),
    "llama3_json": (LLAMA, ["<|python_tag|>", '{"name": "look", "parameters": ' + NUMBERS
                            + '}; {"name": "now", "parameters": {}}'],
                    "", [("look", NUMBERS, None), ("now", "{}", None)]),
    "chatglm3": (GLM, ["look\n ```python\ntool_call(n=123456789012345678901234567890, x=1.50, t='caf\u00e9')\n```"],
                 "", [("look", '{"n": 123456789012345678901234567890, "x": 1.50, "t": "caf\u00e9"}', None)]),
    "json": (PLAIN, ['[{"name": "look", "arguments": ' + NUMBERS + '}, {"name": "now", "arguments": {}}]'],
             "", [("look", NUMBERS, None), ("now", "{}", None)]),
}
MARKER = re.compile(r"<.*>|\[[A-Z_]+\]")


def in_pieces(parts, size):
    return [text[at:at + size] for text in ["".join(parts)] for at in range(0, len(text), size)]


def check_calls(calls, expected):
    """`calls` are id, name and arguments."""
    assert [(name, arguments) for _, name, arguments in calls] == [(name, arguments) for name, arguments, _ in expected]
    for (given, _, _), (_, _, own) in zip(calls, expected):
        assert given == own if own else given.startswith("call_")
    assert len({given for given, _, _ in calls}) == len(calls)


def check_format(daemon, text, expected):
    client = openai.OpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0, timeout=60)
    chat = dict(model=daemon.model(), messages=ASK, tools=TOOLS)
    reply = client.chat.completions.create(**chat).choices[0]
    assert (reply.finish_reason, reply.message.content or "") == ("tool_calls", text)
    check_calls([(c.id, c.function.name, c.function.arguments) for c in reply.message.tool_calls], expected)

    calls, content = {}, ""
    for chunk in client.chat.completions.create(stream=True, **chat):
        delta = chunk.choices[0].delta
        content += delta.content or ""
        for piece in delta.tool_calls or []:
            one = calls.setdefault(piece.index, [None, None, ""])
            if piece.id:
                assert one[0] is None  # only the first event of a call has its id and name
                one[:2] = piece.id, piece.function.name
            one[2] += piece.function.arguments or ""
    assert content == text
    check_calls(list(calls.values()), expected)

    whole = client.responses.create(model=chat["model"], input="What is there?", tools=FLAT)
    assert whole.output_text == text
    check_calls([(o.call_id, o.name, o.arguments) for o in whole.output if o.type == "function_call"], expected)
    events = list(client.responses.create(model=chat["model"], input="What is there?", tools=FLAT, stream=True))
    done = [e.item for e in events if e.type == "response.output_item.done" and e.item.type == "function_call"]
    check_calls([(o.call_id, o.name, o.arguments) for o in done], expected)
    deltas = "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta")
    assert deltas == "".join(arguments for _, arguments, _ in expected)


@pytest.mark.parametrize("name", FORMATS)
def test_calls_reach_the_client(start_daemon, scripted_model, name):
    """Markers are first control tokens, and then plain text in pieces of three characters, which split the markers."""
    source, parts, text, expected = FORMATS[name]
    markers = [part for part in parts if MARKER.fullmatch(part)]
    for pieces, control in ((parts, markers), (in_pieces(parts, 3), [])):
        daemon = start_daemon(model=scripted_model(pieces, control=control, chat_template=source))
        check_format(daemon, text, expected)
        daemon.stop()


def prompt_of(daemon, **body):
    status, tokens = daemon.post("/tokenize", body)
    assert status == 200, tokens
    return daemon.post("/detokenize", {"tokens": tokens["tokens"]})[1]["prompt"]


def test_a_models_template_for_tools_is_used(start_daemon, scripted_model):
    """Requests with tools use the template `tool_use`, a request can name any template, and a broken template affects no other."""
    bare = FORMATS["mistral, names"]
    daemon = start_daemon(model=scripted_model(
        bare[1], control=[part for part in bare[1] if MARKER.fullmatch(part)],
        chat_template="default: {% for m in messages %}{{ m.content }}{% endfor %}",
        chat_templates={"tool_use": "tools: " + bare[0], "rag": "rag: {{ documents[0] }}", "worse": "{% if %}"}))
    assert prompt_of(daemon, messages=ASK) == "default: What is there?"
    assert prompt_of(daemon, messages=ASK, tools=TOOLS).startswith('tools: [{"type": "function"')
    assert prompt_of(daemon, messages=ASK, tools=TOOLS, tool_choice="none") == "default: What is there?"
    assert prompt_of(daemon, messages=ASK, chat_template="rag", chat_template_kwargs={"documents": ["D"]}) == "rag: D"
    assert prompt_of(daemon, messages=ASK, tools=TOOLS, chat_template="default").startswith("default: You can call")
    for name, part in (("worse", "(default, rag, tool_use), got \"worse\""), ("{{ 1 }}", "no templates from requests")):
        for path, body in (("/v1/chat/completions", {"messages": ASK}), ("/tokenize", {"messages": ASK})):
            status, refused = daemon.post(path, {**body, "chat_template": name})
            assert (status, refused["error"]["param"]) == (400, "chat_template"), refused
            assert part in refused["error"]["message"]
    assert "chat template \"worse\" is not used" in daemon.text_of_log()
    check_format(daemon, bare[2], bare[3])


def test_what_a_client_sends_reaches_the_prompt_digit_by_digit(start_daemon, scripted_model):
    """Integers of any length in schemas, calls and template arguments; ids that a template takes; arguments as spelled."""
    big = [18446744073709551615, 18446744073709551616, -9223372036854775809, 123456789012345678901234567890, 10 ** 300]
    schema = {"type": "object", "properties": {"n": {"enum": big, "maximum": 10 ** 40}, "x": {"minimum": 1.0, "maximum": 0.1}}}
    tools = [{"type": "function", "function": {"name": "look", "parameters": schema}}]
    spelled = '{"n":  18446744073709551616,\t"x":0.10, "e": 1e5}'
    history = [*ASK, {"role": "assistant", "content": "", "tool_calls": [
        {"id": "abc123xyz", "type": "function", "function": {"name": "look", "arguments": spelled}},
        {"id": "call_0123456789", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}]
    daemon = start_daemon(model=scripted_model(["ok"], chat_template=HERMES, chat_templates={
        "bare": MISTRAL_BARE, "given": "{{ given }}|{{ given | tojson }}|{{ given[0] + 0.0 == given[0] }}"}))
    as_objects = prompt_of(daemon, messages=history, tools=tools)
    assert json.dumps(tools) in as_objects
    assert json.dumps(json.loads(spelled)) in as_objects
    as_text = prompt_of(daemon, messages=history, tools=tools, chat_template="bare")
    assert f"[TOOL_CALLS]look[CALL_ID]abc123xyz[ARGS]{spelled}" in as_text
    assert re.search(r"look\[CALL_ID\][0-9A-Za-z]{9}\[ARGS\]\{\}", as_text)
    values = [[2 ** 64, 1.0, 100000.0, -0.0, 0.1], big]
    for given in values:
        shown = prompt_of(daemon, messages=ASK, chat_template="given", chat_template_kwargs={"given": given})
        assert shown == f"{given}|{json.dumps(given)}|{float(given[0]) == given[0]}"
    # Numbers in what is repeated to the client, and in an item that the client sends back.
    client = openai.OpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0, timeout=60)
    raw = client.responses.with_raw_response.create(model=daemon.model(), input="x", tools=[
        {"type": "function", "name": "look", "parameters": schema, "strict": False}])
    assert json.loads(raw.content)["tools"][0]["parameters"] == schema
    assert b'"maximum":0.1' in raw.content and b'"minimum":1.0' in raw.content
