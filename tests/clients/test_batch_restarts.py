"""SIGTERM and kill -9 in the middle of batches: each line is answered once, and batches that have ended are still shown."""

import json
import os
import random
import signal
import subprocess
import time

import openai
import pytest

from stored_streams import RestartableDaemon
from test_batches import finished, lines_of, results, start, upload
from test_tenants import tenant

LONG = bool(os.environ.get("TWILL_LONG"))
LINES = 40
# A short drain, so that requests are cut off and have something to continue after the restart.
SETTINGS = ("kv.memory=256MiB", "server.drain_timeout=50ms", "batches.max_running=3")
ENDPOINTS = {
    "/v1/chat/completions": lambda i: {"messages": [{"role": "user", "content": f"Count from {i}."}], "max_tokens": 24},
    "/v1/responses": lambda i: {"input": f"Count from {i}.", "max_output_tokens": 24},
}


def client_of(daemon, key="none"):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{daemon.port}/v1", api_key=key, max_retries=0, timeout=60)


def with_folder(tmp_path, *settings):
    return RestartableDaemon(tmp_path, *SETTINGS, f"batches.folder={tmp_path / 'batches'}", *settings)


def requests(endpoint) -> bytes:
    """Every eighth line is invalid, so that it is answered in the error file."""
    limit = "max_output_tokens" if endpoint == "/v1/responses" else "max_tokens"
    body = ENDPOINTS[endpoint]
    return lines_of(*[(f"line {i}", {**body(i), "temperature": 0, **({limit: -1} if i % 8 == 7 else {})})
                      for i in range(LINES)], url=endpoint)


def answered(client, batch) -> int:
    counts = client.batches.retrieve(batch.id).request_counts
    return counts.completed + counts.failed


def wait_for_answers(client, batches, wanted: int):
    deadline = time.monotonic() + 120
    while sum(answered(client, one) for one in batches) < wanted:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def check(client, batch):
    batch = finished(client, batch)
    assert batch.status == "completed", batch
    counts = batch.request_counts
    assert (counts.total, counts.completed, counts.failed) == (LINES, LINES - LINES // 8, LINES // 8)
    text = client.files.content(batch.output_file_id).text.splitlines()
    errors = client.files.content(batch.error_file_id).text.splitlines()
    assert (len(text), len(errors)) == (counts.completed, counts.failed)
    assert results(client, batch.output_file_id).keys() == {f"line {i}" for i in range(LINES) if i % 8 != 7}
    assert results(client, batch.error_file_id).keys() == {f"line {i}" for i in range(LINES) if i % 8 == 7}
    for line in map(json.loads, text):
        assert line["error"] is None and line["response"]["status_code"] == 200
    return batch


def check_stored(client, batch):
    """Answers are those that were stored under their ids; a kill may lose the last ones before it."""
    found = 0
    for line in results(client, batch.output_file_id).values():
        body = line["response"]["body"]
        try:
            assert client.responses.retrieve(body["id"]).output_text == body["output"][0]["content"][0]["text"]
            found += 1
        except openai.NotFoundError:
            pass
    assert found > LINES // 3


def test_each_line_is_answered_once_over_restarts(tmp_path):
    dice = random.Random(11)
    for round in range(8 if LONG else 1):
        (tmp_path / str(round)).mkdir()
        with with_folder(tmp_path / str(round)) as daemon, client_of(daemon) as client:
            batches = [start(client, upload(client, requests(endpoint)), endpoint, metadata={"job": endpoint})
                       for endpoint in ENDPOINTS]
            restarts = 12 if LONG else 3
            for i in range(restarts):
                # Restarts are spread evenly over the answers, each at a random moment.
                wait_for_answers(client, batches, 2 * LINES * i // (restarts + 1))
                time.sleep(dice.random() * 0.05)
                daemon.restart(signal.SIGTERM if i % 3 == 2 else signal.SIGKILL)
            ended = [check(client, one) for one in batches]
            check_stored(client, ended[1])
            daemon.restart(signal.SIGKILL)
            assert list(client.batches.list()) == ended[::-1]
            assert [client.batches.retrieve(one.id) for one in ended] == ended
            assert len(list(client.files.list())) == 6
            names = {path.name for path in (tmp_path / str(round) / "batches").iterdir()}
            assert len(names) == 2 * 6 + 2 + 1, names  # files with their descriptions, batches, and the lock


def test_batches_go_on_for_their_tenant_alone_and_can_be_cancelled(tmp_path):
    keys = f"tenants=[{tenant('one')}, {tenant('two')}]"
    long = {"prompt": "Once upon a time", "max_tokens": 4000, "min_tokens": 4000, "temperature": 0}
    with with_folder(tmp_path, keys) as daemon, client_of(daemon, "one-key") as one, client_of(daemon, "two-key") as two:
        daemon.headers = {"Authorization": "Bearer one-key"}
        file = upload(one, lines_of(*[(f"l{i}", long) for i in range(9)]))
        running, cancelled = start(one, file), start(one, file)
        deadline = time.monotonic() + 60
        while daemon.metric("twill_num_requests_running") < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for how in (signal.SIGKILL, signal.SIGTERM):
            daemon.restart(how)
            assert one.batches.retrieve(running.id).status == "in_progress"
            assert list(two.batches.list()) == [] and list(two.files.list()) == []
            with pytest.raises(openai.NotFoundError):
                two.batches.retrieve(running.id)
            with pytest.raises(openai.NotFoundError):
                two.batches.cancel(running.id)
            with pytest.raises(openai.ConflictError):
                one.files.delete(file.id)
            if how == signal.SIGKILL:
                one.batches.cancel(cancelled.id)
        ended = finished(one, cancelled)
        assert ended.status == "cancelled" and ended.request_counts.failed == 9
        assert results(one, ended.error_file_id).keys() == {f"l{i}" for i in range(9)}
        one.batches.cancel(running.id)
        assert finished(one, running).status == "cancelled"
        one.files.delete(file.id)


def test_a_second_daemon_takes_nothing_up_and_says_so(tmp_path):
    with with_folder(tmp_path) as daemon, client_of(daemon) as client:
        batch = start(client, upload(client, requests("/v1/chat/completions")), "/v1/chat/completions")
        other = tmp_path / "other"
        other.mkdir()
        with RestartableDaemon(other, *SETTINGS, f"batches.folder={tmp_path / 'batches'}") as second:
            assert "is in use by another process: batches of this one end with it" in second.text_of_log()
            assert json.loads(second.ask("GET", "/v1/batches")[1])["data"] == []
        check(client, batch)
        # The batch's input file is removed while no daemon runs.
        batch = start(client, upload(client, requests("/v1/responses")), "/v1/responses")
        wait_for_answers(client, [batch], 3)
        daemon.end(signal.SIGKILL)
        (tmp_path / "batches" / batch.input_file_id).unlink()
        daemon.start()
        failed = finished(client, batch)
        assert failed.status == "failed" and failed.errors.data[0].code == "file_not_found"
        assert len(results(client, failed.output_file_id)) == failed.request_counts.completed >= 1
