"""Stored responses through the unmodified openai package: in the background, read again, resumed, cancelled and deleted."""

import json
import time

import openai
import pytest

from test_tenants import key_of, tenant

RUNNING = {"queued", "in_progress"}
ASKED = dict(model="tiny", input="Tell a story about the sea.", temperature=1, seed=5, max_output_tokens=24)
LONG = {**ASKED, "max_output_tokens": 4000, "ignore_eos": True}
TOOL = {"type": "function", "name": "weather", "parameters": {"type": "object", "required": ["city"],
                                                              "properties": {"city": {"type": "string"}}}}


@pytest.fixture(scope="module")
def stored_daemon():
    import conftest
    running = conftest.Daemon("kv.memory=256MiB", "model.name=tiny", f"tenants=[{tenant('one')}, {tenant('two')}]",
                              model="")
    yield running
    alive = running.process.poll() is None
    log = running.text_of_log()
    running.stop()
    assert alive, "twilld died during the tests:\n" + log[-3000:]


def client_of(daemon, name):
    return openai.OpenAI(base_url=daemon.url + "/v1", api_key=f"{name}-key", max_retries=0, timeout=60)


@pytest.fixture(scope="module")
def client(stored_daemon):
    with client_of(stored_daemon, "one") as made:
        yield made


@pytest.fixture(scope="module")
def other(stored_daemon):
    with client_of(stored_daemon, "two") as made:
        yield made


def create(client, **asked):
    """Creates a response; fields that OpenAI does not have go into extra_body."""
    own = {name: asked.pop(name) for name in ("seed", "ignore_eos") if name in asked}
    return client.responses.create(**asked, extra_body=own)


def ended(client, response, seconds=60):
    deadline = time.monotonic() + seconds
    while response.status in RUNNING:
        assert time.monotonic() < deadline, response
        time.sleep(0.02)
        response = client.responses.retrieve(response.id)
    return response


def told(event):
    """An event without the members in which two responses of the same text differ."""
    said = event.to_dict()
    for name in ("response", "item_id"):
        said.pop(name, None)
    said.get("item", {}).pop("id", None)
    return said


def test_a_background_response_is_answered_at_once_and_read_when_it_has_ended(client):
    begun = create(client, **ASKED, background=True)
    assert begun.status in RUNNING and begun.background and begun.output == []
    done = ended(client, begun)
    whole = create(client, **ASKED)
    assert (done.status, done.output_text) == (whole.status, whole.output_text)
    assert done.usage.output_tokens == whole.usage.output_tokens > 0
    assert (done.id, done.created_at, done.background) == (begun.id, begun.created_at, True)


def test_a_stream_that_was_broken_off_is_read_on_from_any_number(client):
    undisturbed = list(create(client, **ASKED, stream=True, background=True))
    assert [e.type for e in undisturbed[:3]] == ["response.created", "response.queued", "response.in_progress"]
    numbers = [event.sequence_number for event in undisturbed]
    assert numbers == list(range(len(undisturbed)))
    for n in (1, 7, len(undisturbed) - 2):
        first = []
        with create(client, **ASKED, stream=True, background=True) as stream:
            for event in stream:
                first.append(event)
                if len(first) == n:
                    break
        id = first[0].response.id
        rest = list(client.responses.retrieve(id, stream=True, starting_after=first[-1].sequence_number))
        assert [told(e) for e in first + rest] == [told(e) for e in undisturbed]
        assert rest[-1].response.output_text == undisturbed[-1].response.output_text
        # The response has ended by now, and its events are the same.
        assert list(client.responses.retrieve(id, stream=True, starting_after=n - 1)) == rest
        again = list(client.responses.retrieve(id, stream=True))
        assert [told(e) for e in again] == [told(e) for e in undisturbed]
        assert list(client.responses.retrieve(id, stream=True, starting_after=rest[-1].sequence_number)) == []
        assert client.responses.retrieve(id) == rest[-1].response


def test_several_read_the_same_response_while_it_runs(client):
    begun = create(client, **ASKED, background=True)
    streams = [client.responses.retrieve(begun.id, stream=True, starting_after=after) for after in (0, 3, 5)]
    read = [list(stream) for stream in streams]
    assert [events[0].sequence_number for events in read] == [1, 4, 6]
    assert read[0][3:] == read[1] and read[0][5:] == read[2]


def test_a_response_is_stored_unless_told_otherwise(client):
    made = create(client, **ASKED)
    assert made.store and client.responses.retrieve(made.id) == made
    events = list(create(client, **ASKED, stream=True))
    assert client.responses.retrieve(events[-1].response.id) == events[-1].response
    for how in ({}, {"stream": True}):
        made = create(client, **ASKED, store=False, **how)
        response = list(made)[-1].response if how else made
        assert response.store is False
        for read in (client.responses.retrieve, client.responses.cancel, client.responses.delete,
                     client.responses.input_items.list):
            with pytest.raises(openai.NotFoundError):
                read(response.id)
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            create(client, **ASKED, previous_response_id=response.id)
    with pytest.raises(openai.BadRequestError, match="background"):
        create(client, **ASKED, store=False, background=True)


def test_a_client_that_leaves_a_stream_cancels_it(client):
    with create(client, **LONG, stream=True) as stream:
        id = next(iter(stream)).response.id
    assert ended(client, client.responses.retrieve(id)).status == "cancelled"


def test_the_items_of_the_input_are_listed(client):
    made = create(client, **ASKED)
    [only] = client.responses.input_items.list(made.id)
    assert (only.type, only.role, only.status) == ("message", "user", "completed")
    assert [(part.type, part.text) for part in only.content] == [("input_text", ASKED["input"])]

    items = [{"role": "system", "content": "Be brief."},
             {"role": "user", "content": [{"type": "input_text", "text": "The weather in Oslo?"}]},
             {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Oslo"}'},
             {"type": "function_call_output", "call_id": "c1", "output": "rain"},
             {"role": "assistant", "content": "It rains."},
             {"id": "msg_own", "role": "user", "content": "And now?"}]
    made = create(client, **{**ASKED, "input": items}, tools=[TOOL])
    oldest_first = list(client.responses.input_items.list(made.id, order="asc"))
    assert [item.type for item in oldest_first] == ["message"] * 2 + ["function_call", "function_call_output"] + [
        "message"] * 2
    assert oldest_first[1].content[0].text == "The weather in Oslo?"
    assert (oldest_first[2].call_id, oldest_first[2].name, oldest_first[2].arguments) == (
        "c1", "weather", '{"city":"Oslo"}')
    assert (oldest_first[3].call_id, oldest_first[3].output) == ("c1", "rain")
    assert oldest_first[5].id == "msg_own"
    assert len({item.id for item in oldest_first} | {item.id for item in made.output}) == 6 + len(made.output)
    newest_first = list(client.responses.input_items.list(made.id))
    assert newest_first == oldest_first[::-1]

    for limit in (1, 2, 4, 6, 100):  # the client asks for page after page
        assert list(client.responses.input_items.list(made.id, limit=limit)) == newest_first
    page = client.responses.input_items.list(made.id, limit=2, order="asc", after=oldest_first[1].id)
    assert page.data == oldest_first[2:4] and page.has_more
    assert (page.first_id, page.last_id) == (oldest_first[2].id, oldest_first[3].id)
    page = client.responses.input_items.list(made.id, order="asc", after=oldest_first[5].id)
    assert page.data == [] and not page.has_more
    for wrong in ({"limit": 0}, {"limit": 101}, {"after": "msg_of_nobody"}):
        with pytest.raises(openai.BadRequestError, match=next(iter(wrong))):
            client.responses.input_items.list(made.id, **wrong)


def test_cancel_ends_what_runs_and_changes_nothing_that_has_ended(client, stored_daemon):
    begun = create(client, **LONG, background=True)
    cancelled = client.responses.cancel(begun.id)
    assert (cancelled.id, cancelled.status) == (begun.id, "cancelled")
    stored_daemon.wait_metric("twill_num_requests_running", 0)
    assert client.responses.retrieve(begun.id) == cancelled == client.responses.cancel(begun.id)

    with create(client, **LONG, background=True, stream=True) as stream:
        events = iter(stream)
        id = next(events).response.id
        while next(events).type != "response.output_text.delta":
            pass
        cancelled = client.responses.cancel(id)
        last = list(events)[-1]
    assert last.response == cancelled == client.responses.retrieve(id)
    assert cancelled.status == "cancelled" and cancelled.output_text

    done = create(client, **ASKED)
    assert client.responses.cancel(done.id) == done == client.responses.retrieve(done.id)


def test_what_was_deleted_is_gone(client, stored_daemon):
    done = create(client, **ASKED)
    running = create(client, **LONG, background=True)
    for one in (done, running):
        assert client.responses.delete(one.id) is None
        for read in (client.responses.retrieve, client.responses.cancel, client.responses.delete,
                     client.responses.input_items.list):
            with pytest.raises(openai.NotFoundError):
                read(one.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(one.id, stream=True)
        with pytest.raises(openai.BadRequestError, match="previous_response_id"):
            create(client, **ASKED, previous_response_id=one.id)
    stored_daemon.wait_metric("twill_num_requests_running", 0)
    reply = create(client, **ASKED)
    status, _, body = stored_daemon.request("DELETE", f"/v1/responses/{reply.id}", headers=key_of("one"))
    assert (status, json.loads(body)) == (200, {"id": reply.id, "object": "response", "deleted": True})


def test_a_conversation_goes_on_from_any_stored_response(client):
    turns = ["My name is Ada.", "What is my name?", "And yours?"]
    history, previous, chain = [], None, []
    for turn in turns:
        history.append({"role": "user", "content": turn})
        asked = {**ASKED, "temperature": 0, "max_output_tokens": 12}
        how = {"previous_response_id": previous} if previous else {}
        made = ended(client, create(client, **{**asked, "input": turn}, background=len(chain) == 1, **how))
        whole = create(client, **{**asked, "input": history}, store=False)
        assert made.output_text == whole.output_text
        assert made.usage.input_tokens == whole.usage.input_tokens
        assert made.previous_response_id == previous
        history.append({"role": "assistant", "content": made.output_text})
        previous = made.id
        chain.append(made)
    # A stored response holds the messages before it, so that deleting an earlier response changes nothing.
    branch = dict(**{**ASKED, "temperature": 0}, previous_response_id=chain[1].id)
    before = create(client, **branch).output_text
    client.responses.delete(chain[0].id)
    assert create(client, **branch).output_text == before
    running = create(client, **LONG, background=True)
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        create(client, **ASKED, previous_response_id=running.id)
    client.responses.delete(running.id)


def test_log_probabilities_are_stored(client):
    asked = {**ASKED, "max_output_tokens": 8}
    scored = create(client, **asked, include=["message.output_text.logprobs"], top_logprobs=2)
    assert client.responses.retrieve(scored.id) == scored
    assert len(scored.output[0].content[0].logprobs) == scored.usage.output_tokens
    events = list(client.responses.retrieve(scored.id, stream=True))
    streamed = [one for e in events if e.type == "response.output_text.delta" for one in e.logprobs]
    assert [one.logprob for one in streamed] == [one.logprob for one in scored.output[0].content[0].logprobs]


def test_the_socket_and_http_share_what_is_stored(client):
    with client.responses.connect() as connection:
        connection.response.create(model="tiny", input="Say hello.", max_output_tokens=16, temperature=0)
        events = []
        for event in connection:
            events.append(event)
            if event.type in ("response.completed", "response.incomplete", "response.failed", "error"):
                break
        last = events[-1].response
        assert client.responses.retrieve(last.id) == last
        again = list(client.responses.retrieve(last.id, stream=True))
        assert [told(e) for e in again] == [told(e) for e in events]
        over_http = create(client, model="tiny", input="Say hello.", max_output_tokens=8, temperature=0)
        connection.response.create(model="tiny", input="And again.", previous_response_id=over_http.id,
                                   max_output_tokens=8, temperature=0)
        for event in connection:
            assert event.type not in ("response.failed", "error"), event
            if event.type in ("response.completed", "response.incomplete"):
                assert event.response.previous_response_id == over_http.id
                break


def test_another_tenant_learns_nothing(client, other, stored_daemon):
    done, running = create(client, **ASKED), create(client, **LONG, background=True)
    unknown = done.id[:-8] + "00000000"
    routes = [("GET", ""), ("GET", "?stream=true"), ("GET", "?stream=true&starting_after=2"), ("GET", "/input_items"),
              ("GET", "/input_items?limit=0"), ("POST", "/cancel"), ("DELETE", "")]

    def asked_by(name, method, id, rest):
        status, headers, body = stored_daemon.request(method, f"/v1/responses/{id}{rest}", headers=key_of(name))
        for own in ("Date", "X-Request-Id"):
            headers.pop(own, None)
        return status, headers, body.replace(id.encode(), b"ID")

    for method, rest in routes:
        nothing = asked_by("two", method, unknown, rest)
        assert nothing[0] == 404 and json.loads(nothing[2])["error"]["type"], nothing
        for one in (done, running):
            assert asked_by("two", method, one.id, rest) == nothing
    refusals = []
    for id in (unknown, done.id, running.id):
        with pytest.raises(openai.BadRequestError, match="previous_response_id") as refusal:
            create(other, **ASKED, previous_response_id=id)
        refusals.append(str(refusal.value.body).replace(id, "ID"))
    assert len(set(refusals)) == 1
    # None of these requests has changed the owner's responses.
    assert client.responses.retrieve(done.id) == done
    assert client.responses.retrieve(running.id).status in RUNNING
    client.responses.cancel(running.id)
    for name in ("no-such", "one"):
        status, _, body = stored_daemon.request("GET", f"/v1/responses/{done.id}", headers=key_of(name))
        assert status == (200 if name == "one" else 401)


def test_bad_numbers_of_events_are_refused(client):
    done = create(client, **ASKED)
    for wrong in ("-1", "x", "1.5", "99999999999999999999"):
        with pytest.raises(openai.BadRequestError, match="starting_after"):
            client.responses.retrieve(done.id, stream=True, extra_query={"starting_after": wrong})
    assert list(client.responses.retrieve(done.id, stream=True, starting_after=10**9)) == []
