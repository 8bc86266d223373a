"""Files and batches through the unmodified openai package."""

import json
import time

import openai
import pytest

FINAL = {"completed", "failed", "expired", "cancelled"}


@pytest.fixture(scope="module")
def client(daemon):
    with openai.OpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0) as made:
        yield made


def lines_of(*requests, url="/v1/completions"):
    return "".join(json.dumps({"custom_id": name, "method": "POST", "url": url, "body": body}) + "\n"
                   for name, body in requests).encode()


def upload(client, content, name="requests.jsonl"):
    return client.files.create(file=(name, content), purpose="batch")


def start(client, file, endpoint="/v1/completions", **more):
    return client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h", **more)


def finished(client, batch, seconds=120):
    deadline = time.monotonic() + seconds
    while batch.status not in FINAL:
        assert time.monotonic() < deadline, batch
        time.sleep(0.05)
        batch = client.batches.retrieve(batch.id)
    return batch


def results(client, file_id):
    return {line["custom_id"]: line
            for line in map(json.loads, client.files.content(file_id).text.splitlines())}


def test_a_batch_answers_as_single_requests_do(client, daemon):
    prompts = {f"p{i}": f"The number {i} is" for i in range(12)}
    file = upload(client, lines_of(*[(k, {"prompt": p, "max_tokens": 8, "temperature": 0})
                                     for k, p in prompts.items()]))
    assert (file.purpose, file.filename, file.object) == ("batch", "requests.jsonl", "file")
    batch = start(client, file, metadata={"job": "numbers"})
    assert batch.object == "batch" and batch.metadata == {"job": "numbers"}
    batch = finished(client, batch)
    assert batch.status == "completed", batch
    assert (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed) == (12, 12, 0)
    assert batch.error_file_id is None and batch.completed_at >= batch.in_progress_at >= batch.created_at
    found = results(client, batch.output_file_id)
    assert found.keys() == prompts.keys()
    for name, prompt in prompts.items():
        reply = found[name]["response"]
        assert reply["status_code"] == 200 and found[name]["error"] is None
        assert reply["body"]["choices"][0]["text"] == daemon.complete(prompt, max_tokens=8)["choices"][0]["text"]


@pytest.mark.parametrize("endpoint, body, text_of", [
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 6},
     lambda b: b["choices"][0]["message"]["content"]),
    ("/v1/responses", {"input": "Say hi.", "max_output_tokens": 6},
     lambda b: b["output"][0]["content"][0]["text"]),
])
def test_chat_and_responses_run_in_batches(client, endpoint, body, text_of):
    file = upload(client, lines_of(("one", {**body, "temperature": 0}), url=endpoint))
    batch = finished(client, start(client, file, endpoint))
    assert batch.status == "completed", batch
    assert text_of(results(client, batch.output_file_id)["one"]["response"]["body"])


def test_a_line_at_fault_becomes_an_error_line(client):
    good = {"prompt": "Hi", "max_tokens": 2}
    file = upload(client, lines_of(("good", good), ("negative", {**good, "max_tokens": -1}),
                                   ("streams", {**good, "stream": True}), ("model", {**good, "model": "other"})))
    batch = finished(client, start(client, file))
    assert batch.status == "completed"
    assert (batch.request_counts.completed, batch.request_counts.failed) == (1, 3)
    assert results(client, batch.output_file_id).keys() == {"good"}
    errors = results(client, batch.error_file_id)
    assert errors["negative"]["response"]["status_code"] == 400
    assert "max_tokens" in errors["negative"]["response"]["body"]["error"]["message"]
    assert errors["streams"]["response"]["body"]["error"]["param"] == "stream"
    assert errors["model"]["response"]["status_code"] == 404


def test_a_bad_file_fails_validation_with_line_numbers(client):
    good = lines_of(("a", {"prompt": "Hi", "max_tokens": 1}))
    wrong_url = lines_of(("b", {"messages": []}), url="/v1/chat/completions")
    file = upload(client, good + b"\n{not json\n" + wrong_url + good)
    batch = finished(client, start(client, file))
    assert batch.status == "failed" and batch.output_file_id is None
    faults = {e.line: e for e in batch.errors.data}
    assert faults.keys() == {3, 4, 5}
    assert faults[3].code == "invalid_json_line"
    assert faults[4].param == "url"
    assert faults[5].code == "duplicate_custom_id"


def test_cancel_ends_a_batch_and_says_so_for_each_line(client):
    long = {"prompt": "Once upon a time", "max_tokens": 4000, "min_tokens": 4000, "temperature": 0}
    file = upload(client, lines_of(*[(f"l{i}", long) for i in range(30)]))
    batch = start(client, file)
    cancelled = client.batches.cancel(batch.id)
    assert cancelled.status in {"cancelling", "cancelled"}
    batch = finished(client, batch)
    assert batch.status == "cancelled" and batch.cancelled_at
    errors = results(client, batch.error_file_id)
    assert len(errors) == 30 and {e["error"]["code"] for e in errors.values()} == {"batch_cancelled"}
    with pytest.raises(openai.ConflictError):
        client.batches.cancel(batch.id)


def test_interactive_requests_pass_a_long_batch(client, daemon):
    long = {"prompt": "Once upon a time", "max_tokens": 2000, "min_tokens": 2000}
    file = upload(client, lines_of(*[(f"l{i}", long) for i in range(200)]))
    batch = start(client, file)
    deadline = time.monotonic() + 60
    while daemon.metric("twill_num_requests_running") < 1:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert daemon.complete("The sky is", max_tokens=4)["choices"][0]["text"]
    assert client.batches.retrieve(batch.id).status == "in_progress"
    assert daemon.metric("twill_num_requests_running") <= 4
    client.batches.cancel(batch.id)
    assert finished(client, batch).status == "cancelled"


def test_files_are_listed_read_and_deleted(client):
    content = lines_of(("x", {"prompt": "Hi"}))
    file = upload(client, content, "notes.jsonl")
    assert client.files.retrieve(file.id).bytes == len(content)
    assert client.files.content(file.id).read() == content
    assert file.id in [f.id for f in client.files.list(purpose="batch")]
    assert client.files.delete(file.id).deleted
    for gone in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError):
            gone(file.id)


def test_batches_are_listed_page_by_page(client):
    file = upload(client, lines_of(("x", {"prompt": "Hi", "max_tokens": 1})))
    made = [finished(client, start(client, file)).id for _ in range(3)]
    listed = [b.id for b in client.batches.list(limit=2)]  # the client asks for page after page
    assert listed[:3] == made[::-1]
    first = client.batches.list(limit=2)
    assert len(first.data) == 2 and first.has_more


def test_what_makes_no_sense_is_refused(client):
    with pytest.raises(openai.BadRequestError, match="purpose"):
        client.files.create(file=("a", b"{}"), purpose="fine-tune")
    with pytest.raises(openai.NotFoundError):
        client.batches.create(input_file_id="file-none", endpoint="/v1/completions", completion_window="24h")
    file = upload(client, b"{}\n")
    with pytest.raises(openai.BadRequestError, match="endpoint"):
        client.batches.create(input_file_id=file.id, endpoint="/v1/moderations", completion_window="24h")
    with pytest.raises(openai.BadRequestError, match="completion_window"):
        client.batches.create(input_file_id=file.id, endpoint="/v1/completions", completion_window="soon")
    with pytest.raises(openai.NotFoundError):
        client.batches.retrieve("batch_none")
