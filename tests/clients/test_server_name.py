"""Several daemons with names of their own: an id names the daemon that made it, and other daemons answer with that name."""

import json
import re

import openai
import pytest
from websockets.sync.client import connect

from test_batches import finished, lines_of, results, start, upload

ASKED = dict(model="m", input="Tell a story.", max_output_tokens=4)


@pytest.fixture(scope="module")
def daemons():
    import conftest
    started = {}
    try:
        for name in ("a1", "b2", ""):
            started[name] = conftest.Daemon(f"server.name={name}", "model.name=m", model="dummy:null")
        yield started
        for name, one in started.items():
            assert one.process.poll() is None, f"{name} died during the tests:\n" + one.text_of_log()[-3000:]
    finally:
        for one in started.values():
            one.stop()


@pytest.fixture(scope="module")
def clients(daemons):
    return {name: openai.OpenAI(base_url=one.url + "/v1", api_key="none", max_retries=0, timeout=60)
            for name, one in daemons.items()}


def said_of(id, own="b2"):
    """The message of a server for an id in a path that belongs to another server."""
    this = f'"{own}"' if own else "which has no name (`server.name`)"
    return f'"{id}" on this server, {this}: the id names the server "a1"; send the request there'


def said_of_field(id, own="b2"):
    this = f'is "{own}"' if own else "has no name (`server.name`)"
    return f'got "{id}"; this server {this}, and the id names the server "a1": send the request there'


def refused(status, ask):
    with pytest.raises(openai.APIStatusError) as caught:
        ask()
    assert caught.value.status_code == status
    return caught.value


def test_ids_carry_the_name(daemons, clients):
    for name, client in clients.items():
        middle = name and re.escape(name + ".")
        messages = [{"role": "user", "content": "hi"}]
        chat = client.chat.completions.create(model="m", messages=messages, max_tokens=2)
        text = client.completions.create(model="m", prompt="hi", max_tokens=2)
        response = client.responses.create(**ASKED)
        file = upload(client, lines_of(("one", {"prompt": "hi", "max_tokens": 2})))
        batch = finished(client, start(client, file))
        output = results(client, batch.output_file_id)["one"]["response"]["body"]
        made = {"chatcmpl-": [chat.id], "cmpl-": [text.id, output["id"]], "resp_": [response.id],
                "file-": [file.id, batch.output_file_id], "batch_": [batch.id]}
        for prefix, ids in made.items():
            for id in ids:
                assert re.fullmatch(prefix + middle + "[0-9a-f]{24}", id), id
        version = json.loads(daemons[name].request("GET", "/version")[2])
        assert version.get("name", "") == name


def test_another_server_says_whose_a_response_is(clients):
    id = clients["a1"].responses.create(**ASKED).id
    for own in ("b2", ""):
        responses = clients[own].responses
        for ask in (lambda: responses.retrieve(id), lambda: list(responses.retrieve(id, stream=True)),
                    lambda: responses.delete(id), lambda: responses.cancel(id),
                    lambda: list(responses.input_items.list(id))):
            error = refused(404, ask)
            assert (error.type, error.code) == ("not_found_error", "response_not_found")
            assert error.body["message"] == "there is no stored response " + said_of(id, own)
        error = refused(400, lambda: responses.create(**ASKED, previous_response_id=id))
        assert (error.code, error.param) == ("previous_response_not_found", "previous_response_id")
        assert error.body["message"].endswith(said_of_field(id, own))
    # The server that made the response has it until it is deleted.
    assert clients["a1"].responses.create(**ASKED, previous_response_id=id).previous_response_id == id
    clients["a1"].responses.delete(id)
    gone = refused(404, lambda: clients["a1"].responses.retrieve(id)).body["message"]
    assert f'"{id}" on this server, "a1"; it may have been deleted' in gone


def test_a_websocket_says_whose_a_response_is(daemons, clients):
    id = clients["a1"].responses.create(**ASKED).id
    with connect(daemons["b2"].ws + "/v1/responses") as socket:
        socket.send(json.dumps({"type": "response.create", **ASKED, "previous_response_id": id}))
        event = json.loads(socket.recv(30))
        assert (event["type"], event["status"]) == ("error", 400)
        assert event["error"]["message"].endswith(said_of_field(id))
        socket.send(json.dumps({"type": "response.create", **ASKED}))
        assert json.loads(socket.recv(30))["response"]["id"].startswith("resp_b2.")


def test_another_server_says_whose_a_file_or_batch_is(clients):
    file = upload(clients["a1"], lines_of(("one", {"prompt": "hi", "max_tokens": 2})))
    batch = finished(clients["a1"], start(clients["a1"], file))
    for own in ("b2", ""):
        other = clients[own]
        for ask in (other.files.retrieve, other.files.delete, other.files.content):
            error = refused(404, lambda: ask(file.id))
            assert error.code == "file_not_found"
            assert error.body["message"] == "there is no file " + said_of(file.id, own)
        for ask in (other.batches.retrieve, other.batches.cancel):
            error = refused(404, lambda: ask(batch.id))
            assert error.code == "batch_not_found"
            assert error.body["message"] == "there is no batch " + said_of(batch.id, own)
        error = refused(404, lambda: start(other, file))
        assert (error.code, error.param) == ("file_not_found", "input_file_id")
        assert error.body["message"].endswith(said_of_field(file.id, own))
    clients["a1"].files.delete(file.id)
    gone = refused(404, lambda: clients["a1"].files.retrieve(file.id)).body["message"]
    assert gone == f'there is no file "{file.id}" on this server, "a1"; GET /v1/files lists yours'


def test_a_line_of_a_batch_says_whose_a_response_is(clients):
    id = clients["a1"].responses.create(**ASKED).id
    line = {"input": "And?", "max_output_tokens": 2, "previous_response_id": id}
    file = upload(clients["b2"], lines_of(("one", line), url="/v1/responses"))
    batch = finished(clients["b2"], start(clients["b2"], file, endpoint="/v1/responses"))
    answer = results(clients["b2"], batch.error_file_id)["one"]["response"]
    assert answer["status_code"] == 400
    assert answer["body"]["error"]["message"].endswith(said_of_field(id))


def test_files_and_responses_stay_under_another_name(start_daemon, tmp_path):
    settings = (f"batches.folder={tmp_path / 'files'}", f"responses.folder={tmp_path / 'responses'}", "model.name=m")
    first = start_daemon("server.name=a1", *settings, model="dummy:null")
    with openai.OpenAI(base_url=first.url + "/v1", api_key="none", max_retries=0) as client:
        file, response = upload(client, b"{}\n"), client.responses.create(**ASKED)
    first.stop()
    second = start_daemon("server.name=b2", *settings, model="dummy:null")
    with openai.OpenAI(base_url=second.url + "/v1", api_key="none", max_retries=0) as client:
        assert client.files.retrieve(file.id) == file and client.files.content(file.id).text == "{}\n"
        assert client.responses.retrieve(response.id) == response
        assert client.responses.create(**ASKED, previous_response_id=response.id).id.startswith("resp_b2.")
        client.files.delete(file.id)
        assert file.id not in [one.id for one in client.files.list()]
