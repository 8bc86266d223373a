"""Each field that /openapi.json lists as honoured changes a result: requests with the field and without it are compared."""

import http.client
import json
import pathlib
import select
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import Daemon
from field_tables import BASES, GENERATE_NOTHING, ONLY_REPEATED, REPEATING, SHOWN, Refused, limit_of, longer
from test_tenants import key_of, tenant

HERE = pathlib.Path(__file__).resolve().parent
# Fields whose effect a single request does not show, and the test that shows it.
ELSEWHERE = {
    "priority": "test_a_lower_priority_is_served_earlier below",
    "cache_salt": "test_a_salt_of_ones_own_shares_no_prefix below",
    "store": "test_what_is_stored_can_be_read_again below",
    "generate": "tests/net/websocket/websocket_test.cpp: over WebSocket alone",
    "parallel_tool_calls": "test_an_answer_has_one_call_where_they_are_not_parallel below",
}
# Members of answers that differ between two equal requests, by time or by what was cached.
VARYING = {"id", "call_id", "item_id", "created", "created_at", "seed", "timings", "tokens_cached", "generation_settings",
           "prompt_tokens_details", "input_tokens_details", "input_tokens", "cache_read_input_tokens", "total_duration",
           "load_duration", "prompt_eval_duration", "eval_duration"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A small model with random weights, little room, a token for the beginning, and a template that knows tools and thinking."""
    template = tmp_path_factory.mktemp("fields") / "template.jinja"
    template.write_text((HERE / "tools.jinja").read_text() +
                        "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}")
    running = Daemon("model.compute=f32", f"model.chat_template={template}", "model.tool_format=hermes",
                     model="dummy:mistral-7b?layers=1&hidden=64&heads=2&kv-heads=1&head-dim=32&mlp=64&vocab=4000&context=1024")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def slow():
    """A model that computes nothing and takes 5 ms for each token. It serves one request at a time; keys tell clients apart."""
    running = Daemon("scheduler.max_running=1", f"tenants=[{tenant('one')}]", model="dummy:null?step-us=5000")
    yield running
    running.stop()


@pytest.fixture(scope="module")
def document(daemon):
    return json.loads(daemon.request("GET", "/openapi.json")[2])


def fields_of(document, path):
    operation = document["paths"][path].get("post", {})
    content = operation.get("requestBody", {}).get("content", {})
    return content.get("application/json", {}).get("schema", {}).get("properties", {})


def named(properties, use, within=""):
    """The fields of one use. For an object whose members have uses of their own, `object.member` stands for a member."""
    found = {}
    for name, about in properties.items():
        members = {key: one for key, one in about.get("properties", {}).items() if "x-twill" in one}
        found |= named(members, use, f"{within}{name}.")
        if about.get("x-twill") == use and not members:
            found[within + name] = about
    return found


def with_fields(body, fields):
    """A body with further fields; `a.b` is the member b of a, and a field that is None is removed."""
    body = dict(body)
    for name, value in fields.items():
        outer, _, inner = name.partition(".")
        if inner:
            body[outer] = with_fields(body.get(outer, {}), {inner: value})
        elif value is None:
            body.pop(name, None)
        else:
            body[name] = value
    return body


def ask(daemon, path, body, headers=None):
    status, _, text = daemon.request("POST", path, body, headers, timeout=120)
    return status, text.decode()


def once(daemon, path, body, known={}):
    """The reply to a body. The request is sent only the first time; later calls return the same reply."""
    key = (daemon.url, path, json.dumps(body))
    if key not in known:
        known[key] = ask(daemon, path, body)
    return known[key]


def steady(value):
    if isinstance(value, list):
        return [steady(one) for one in value]
    if isinstance(value, dict):
        return {name: name in VARYING or steady(one) for name, one in value.items()}
    return value


def comparable(reply, repeated=None):
    """A reply, or its events or lines, without members that differ between equal requests and without repeated fields."""
    status, text = reply
    lines = [line.removeprefix("data:").strip() for line in text.splitlines()]
    parts = [steady(json.loads(line)) for line in lines if line.startswith(("{", "[")) and line != "[DONE]"]
    for part in parts:
        if isinstance(part, dict):
            part.pop(repeated, None)
    return status, parts


def changed(daemon, path, field, entry):
    """Whether a value changes the answer of the base request, or is refused if it must be."""
    def value_for(given):
        return given(daemon) if callable(given) else given

    extra, given, *lacking = entry
    extra = {**dict.fromkeys(lacking), **{name: value_for(value) for name, value in extra.items()}}
    base = with_fields(BASES[path], {limit_of(path) if name == "LIMIT" else name: value for name, value in extra.items()})
    without = once(daemon, path, base)
    assert without[0] == 200, (path, field, without)
    if isinstance(given, Refused):
        status, text = ask(daemon, path, with_fields(base, {field: given.value}))
        return status in (400, 404, 422) and (given.named or field) in text
    with_it = ask(daemon, path, with_fields(base, {field: value_for(given)}))
    repeated = field.partition(".")[0] if path in REPEATING and field not in ONLY_REPEATED else None
    return with_it[0] == 200 and comparable(with_it, repeated) != comparable(without, repeated)


def example(about, odd):
    """A value of a documented type; an unusual value where any type is allowed."""
    kind = about.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    return {"object": {"a": 1}, "array": [], "string": "x", "integer": 3, "number": 3, "boolean": False}.get(kind, odd)


def test_each_route_that_generates_has_a_base(document):
    documented = {path for path in document["paths"] if any("x-twill" in one for one in fields_of(document, path).values())}
    assert documented == set(BASES) | GENERATE_NOTHING and set(BASES) == set(SHOWN)


@pytest.mark.parametrize("path", BASES)
def test_every_honoured_field_changes_a_result(daemon, document, path):
    fields, shown = fields_of(document, path), SHOWN[path]
    missing = set(named(fields, "honoured")) - set(shown) - {name.partition(".")[0] for name in shown} - set(ELSEWHERE)
    assert not missing, f"{path} documents fields that field_tables.py does not show: {sorted(missing)}"
    asked = [field for field in shown if field not in named(fields, "refused")]
    idle = [field for field in asked if not changed(daemon, path, field, shown[field])]
    assert not idle, f"{path}: these fields changed nothing: {idle}"


@pytest.mark.parametrize("path", BASES)
def test_a_field_without_effect_changes_none(daemon, document, path):
    fields = named(fields_of(document, path), "no effect")
    assert not set(fields) & set(SHOWN[path])
    odd = {name: example(about, [{"a": 1}, "x", 3][i % 3]) for i, (name, about) in enumerate(fields.items())}
    assert comparable(ask(daemon, path, with_fields(BASES[path], odd))) == comparable(once(daemon, path, BASES[path]))


@pytest.mark.parametrize("path", BASES)
def test_a_refused_field_is_refused_by_name(daemon, document, path):
    for field in named(fields_of(document, path), "refused"):
        extra, given = SHOWN[path].get(field, ({}, {"a": 1}))
        assert changed(daemon, path, field, (extra, Refused(given))), field


def honouring(document, field):
    return [path for path in BASES if field in named(fields_of(document, path), "honoured")]


def test_a_salt_of_ones_own_shares_no_prefix(daemon, document):
    def cached(path, salt):
        before = daemon.metric("twill_prefix_cache_hits_total")
        assert ask(daemon, path, with_fields(BASES[path], {**longer(path, 50), "cache_salt": path + salt}))[0] == 200
        return daemon.metric("twill_prefix_cache_hits_total") - before

    for path in honouring(document, "cache_salt"):
        assert cached(path, "one") == 0 and cached(path, "one") > 0 and cached(path, "two") == 0, path


def test_a_lower_priority_is_served_earlier(slow, document):
    def long():
        connection = http.client.HTTPConnection(slow.host, slow.port, timeout=60)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "a", "max_tokens": 1000, "ignore_eos": True}),
                           key_of("one"))
        return connection

    def is_answered(connection):
        return bool(select.select([connection.sock], [], [], 0)[0])

    for path in honouring(document, "priority"):
        texts = 3 if path.endswith(("score", "rerank")) else 1
        runs = long()
        slow.wait_metric("twill_num_requests_running", 1)
        waits = long()
        slow.wait_metric("twill_num_requests_waiting", 1)
        with ThreadPoolExecutor() as pool:
            asked = pool.submit(ask, slow, path, {**BASES[path], "priority": -1}, key_of("one"))
            slow.wait_metric("twill_num_requests_waiting", 1 + texts)
            runs.close()
            assert asked.result()[0] == 200 and not is_answered(waits), path
        waits.close()
        slow.check_ledger()


def test_what_is_stored_can_be_read_again(daemon, document):
    for path in honouring(document, "store"):
        for wanted in (True, False):
            _, text = ask(daemon, path, {**BASES[path], "store": wanted})
            assert (daemon.request("GET", f"{path}/{json.loads(text)['id']}")[0] == 200) is wanted, path


def test_an_answer_has_one_call_where_they_are_not_parallel(start_daemon, scripted_model, document):
    calls = [f'<tool_call>{{"name": "paint", "arguments": {{"colour": "{colour}"}}}}</tool_call>' for colour in ("red", "blue")]
    scripted = start_daemon("model.tool_format=hermes",
                            model=scripted_model(calls, chat_template=(HERE / "tools.jinja").read_text()))
    ways = [(path, {"parallel_tool_calls": False}) for path in honouring(document, "parallel_tool_calls")]
    for path, alone in ways + [("/v1/messages", {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}})]:
        body = {**BASES[path], "tools": SHOWN[path]["tools"][1]}
        both, one = (ask(scripted, path, {**body, **more})[1].count("paint") for more in ({}, alone))
        assert both == one + 1, path
