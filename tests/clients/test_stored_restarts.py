"""SIGTERM and kill -9 in the middle of stored responses: each continues with the same tokens, and each event keeps its number."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import time

import openai
import pytest

from conftest import BIN
from stored_streams import RestartableDaemon, Stream, break_off, content, output, wait_for_events
from test_tenants import key_of, tenant

LONG = bool(os.environ.get("TWILL_LONG"))
TEMPLATE = pathlib.Path(__file__).resolve().parent / "tools.jinja"
# A short drain, so that responses are cut off and have something to continue after the restart.
SETTINGS = (f"model.chat_template={TEMPLATE}", "model.tool_format=hermes", "kv.memory=256MiB",
            "server.drain_timeout=50ms")

SCHEMA = {"type": "object", "required": ["city", "words", "people"], "additionalProperties": False, "properties": {
    "city": {"type": "string", "minLength": 8, "maxLength": 40},
    "words": {"type": "array", "minItems": 3, "maxItems": 6, "items": {"type": "string", "maxLength": 24}},
    "people": {"type": "integer"}}}
NOTE = {"type": "function", "name": "note", "description": "Writes a note down.", "parameters": {
    "type": "object", "required": ["title", "text"], "additionalProperties": False, "properties": {
        "title": {"type": "string", "minLength": 4, "maxLength": 40}, "text": {"type": "string", "maxLength": 160}}}}
KINDS = {
    "text": {"max_output_tokens": 80},
    "scores": {"max_output_tokens": 48, "include": ["message.output_text.logprobs"], "top_logprobs": 3},
    "json": {"max_output_tokens": 96, "text": {"format": {"type": "json_schema", "name": "city", "schema": SCHEMA,
                                                            "strict": True}}},
    "tool": {"max_output_tokens": 96, "tools": [NOTE], "tool_choice": "required"},
}
WAYS = ("sse", "background", "websocket", "sse")
SUBJECTS = ("a cat", "the sea", "war", "bread", "a king", "snow", "Mars", "love")


def asked(i: int) -> dict:
    kind = list(KINDS)[i % len(KINDS)]
    return {"model": "tiny", "input": f"Tell a story about {SUBJECTS[i % len(SUBJECTS)]}.", "temperature": 1.0,
            "seed": i, **KINDS[kind]}


def undisturbed(daemon, bodies) -> list:
    streams = [Stream(daemon, "sse", {**body, "store": False}).start() for body in bodies]
    for one in streams:
        one.thread.join()
        assert one.error is None, one.error
    return [content(one.events) for one in streams]


def without_numbers(said: list) -> list:
    return [{**one, "sequence_number": None} if isinstance(one, dict) else one for one in said]


def check(daemon, one: Stream, expected: list):
    """Checks that a stream that has ended equals the undisturbed one, and that the daemon gives the same events once more."""
    assert one.error is None, (one.way, one.body, one.error)
    stored = daemon.response(one.id)
    again = Stream(daemon, "sse", {})
    again.id = one.id
    again.go_on()
    if one.way == "background":
        # A background response has one event more, `response.queued`, so that the numbers differ.
        events = [json.loads(text) for text in again.events]
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert events.pop(1)["type"] == "response.queued"
        assert without_numbers(content(events)) == without_numbers(expected), (one.body, stored)
    else:
        assert again.events == one.events
        assert content(one.events) == expected, (one.body, stored)
    assert json.loads(again.events[-1])["response"] == stored


def wave(daemon, numbers, restarts: int, dice: random.Random, resets: int = 0) -> int:
    """Runs streams at once, with restarts and resets in their middle. Returns how many were broken off."""
    bodies = [asked(i) for i in numbers]
    expected = undisturbed(daemon, bodies)
    streams = [Stream(daemon, WAYS[(i // len(KINDS) + i) % len(WAYS)], body).start() for i, body in zip(numbers, bodies)]
    told = [one for one in streams if one.way != "background"]
    total = sum(len(events) for one, events in zip(streams, expected) if one.way != "background")
    break_off(daemon, told, total, restarts, resets, dice)
    for one in streams:
        one.thread.join()
    for one, events in zip(streams, expected):
        check(daemon, one, events)
    return sum(one.breaks > 0 for one in streams)


def test_streams_go_on_over_restarts(tmp_path):
    seed = int(os.environ.get("TWILL_SEED", random.randrange(10**6)))
    print("TWILL_SEED =", seed)
    dice = random.Random(seed)
    waves, width, resets = (10, 20, 10) if LONG else (1, 16, 2)
    (tmp_path / "kv").mkdir(mode=0o700)
    tiers = (f"kv.disk_dir={tmp_path / 'kv'}", "kv.disk_memory=64MiB", "kv.keep=true") if LONG else ()
    # A client whose connection is reset comes back within the grace.
    with RestartableDaemon(tmp_path, *SETTINGS, *tiers, "responses.grace=60s") as daemon:
        broken = 0
        for n in range(waves):
            broken += wave(daemon, range(n * width, (n + 1) * width), 2, dice, resets)
            print(f"{(n + 1) * width} streams, {2 * (n + 1)} restarts, {broken} broken off and whole", flush=True)
        assert broken >= waves * width // 4, f"only {broken} were broken off"
        for name in os.listdir(daemon.folder):
            assert os.stat(daemon.folder / name).st_mode & 0o077 == 0
        assert "story" not in daemon.text_of_log()


STORY = {"model": "tiny", "input": "Tell a story about a ship.", "temperature": 1.0, "seed": 3, "max_output_tokens": 60}
ENDLESS = {**STORY, "max_output_tokens": 7000, "ignore_eos": True}


def begun(daemon, body) -> str:
    """Starts a background response, waits until it has some text, and returns its id."""
    id = daemon.post({**body, "background": True})["id"]
    events_of(daemon, id, 8)
    return id


def events_of(daemon, id, wanted: int) -> list:
    """The first events of a running response."""
    connection = daemon.connection()
    connection.request("GET", f"/v1/responses/{id}?stream=true", headers=daemon.headers)
    events = []
    for line in connection.getresponse():
        if line.startswith(b"data: "):
            events.append(line)
        if len(events) == wanted:
            connection.close()
            return events
    raise AssertionError(f"{id} ended after {len(events)} events")


def goes_on(daemon):
    """Waits until the daemon, which has just been started, has generated tokens."""
    deadline = time.monotonic() + 30
    while daemon.metric("twill_generation_tokens_total") < 3:
        assert time.monotonic() < deadline, daemon.text_of_log()[-3000:]
        time.sleep(0.02)


def test_what_has_ended_stays_as_it_was(tmp_path):
    with RestartableDaemon(tmp_path, *SETTINGS) as daemon:
        short = {**STORY, "max_output_tokens": 32}
        ids = [daemon.post(body)["id"] for body in (short, {**KINDS["tool"], **short}, {**KINDS["scores"], **short})]
        cancelled = begun(daemon, ENDLESS)
        assert daemon.ask("POST", f"/v1/responses/{cancelled}/cancel")[0] == 200
        follow = {**short, "input": "And then?", "temperature": 0, "store": False, "max_output_tokens": 12}
        follows = [{**follow, "previous_response_id": id} for id in ids[:2]]
        deleted, unstored = daemon.post(short)["id"], daemon.post({**short, "store": False})["id"]
        assert daemon.ask("DELETE", f"/v1/responses/{deleted}")[0] == 200
        rests = ("", "?stream=true", "?stream=true&starting_after=5", "/input_items")

        def seen():
            return [daemon.get(id, rest) for id in ids + [cancelled, deleted, unstored] for rest in rests]

        before, answers = seen(), [output(daemon.post(one)) for one in follows]
        assert [status for status, _ in before] == [200] * 16 + [404] * 8
        last = None
        for how in (signal.SIGKILL, signal.SIGTERM):
            daemon.restart(how)
            assert seen() == before
            assert [output(daemon.post(one)) for one in follows] == answers
            # A conversation that is continued after a restart is kept over the next restart.
            previous, last = last, daemon.post({**follows[0], "store": True})["id"]
            assert previous is None or daemon.response(previous)["previous_response_id"] == ids[0]


def test_nothing_is_written_of_what_is_not_stored_or_deleted(tmp_path):
    with RestartableDaemon(tmp_path, *SETTINGS) as daemon:
        daemon.post({**STORY, "store": False, "input": "Remember the word Xyzzy1."})
        running = begun(daemon, {**ENDLESS, "input": "Remember the word Xyzzy2."})
        done = daemon.post({**STORY, "input": "Remember the word Xyzzy3."})["id"]
        kept = daemon.post({**STORY, "input": "Remember the word Xyzzy4."})["id"]
        for id in (running, done):
            assert daemon.ask("DELETE", f"/v1/responses/{id}")[0] == 200
        deadline = time.monotonic() + 10  # the journal is rewritten at most once a second
        while (found := words_in(daemon.folder)) != {b"Xyzzy4"}:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        daemon.restart(signal.SIGKILL)
        assert words_in(daemon.folder) == {b"Xyzzy4"} and daemon.get(kept)[0] == 200
        assert "Xyzzy" not in daemon.text_of_log()


def words_in(folder) -> set:
    found = set()
    for name in os.listdir(folder):
        try:
            found |= set(re.findall(rb"Xyzzy\d", (folder / name).read_bytes()))
        except FileNotFoundError:
            pass  # the file has just been replaced
    return found


def test_a_response_is_given_up_at_the_third_restart(tmp_path):
    with RestartableDaemon(tmp_path, *SETTINGS) as daemon:
        id = begun(daemon, ENDLESS)
        for how in (signal.SIGKILL, signal.SIGTERM):
            daemon.restart(how)
            goes_on(daemon)
            assert daemon.response(id)["status"] == "in_progress"
        daemon.restart(signal.SIGKILL)
        failed = daemon.ended(id)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "server_error")
        assert failed["output"][0]["content"][0]["text"]
        before = daemon.get(id)
        daemon.restart(signal.SIGKILL)
        assert daemon.get(id) == before


def test_the_time_of_a_response_runs_on_while_the_daemon_is_down(tmp_path):
    with RestartableDaemon(tmp_path, *SETTINGS, "limits.request_timeout=5s") as daemon:
        id = begun(daemon, ENDLESS)
        daemon.end(signal.SIGKILL)
        time.sleep(5)
        daemon.start()
        failed = daemon.ended(id, seconds=5)
        assert failed["status"] == "failed" and failed["output"][0]["content"][0]["text"]


def test_cancel_and_delete_reach_what_goes_on(tmp_path):
    with RestartableDaemon(tmp_path, *SETTINGS) as daemon:
        cancelled, deleted = begun(daemon, ENDLESS), begun(daemon, {**ENDLESS, "seed": 4})
        seen = events_of(daemon, cancelled, 8)
        daemon.restart(signal.SIGKILL)
        goes_on(daemon)
        assert events_of(daemon, cancelled, 8) == seen
        status, text = daemon.ask("POST", f"/v1/responses/{cancelled}/cancel")
        assert (status, json.loads(text)["status"]) == (200, "cancelled")
        assert json.loads(text)["output"][0]["content"][0]["text"]
        assert daemon.ask("DELETE", f"/v1/responses/{deleted}")[0] == 200
        daemon.restart(signal.SIGKILL)
        assert daemon.get(cancelled) == (200, text)
        assert daemon.get(deleted)[0] == 404


def test_the_openai_client_reads_on_and_talks_on_after_a_restart(tmp_path):
    with RestartableDaemon(tmp_path, *SETTINGS) as daemon, openai.OpenAI(
            base_url=f"http://127.0.0.1:{daemon.port}/v1", api_key="none", max_retries=0, timeout=60) as client:
        asked = {name: value for name, value in STORY.items() if name != "seed"}
        first = client.responses.create(**asked, extra_body={"seed": 3})
        turn = dict(model="tiny", input="And then?", temperature=0, max_output_tokens=16, previous_response_id=first.id)
        answer = client.responses.create(**turn)
        with client.responses.create(**asked, extra_body={"seed": 3}, background=True, stream=True) as stream:
            seen = [event for event, _ in zip(stream, range(12))]
        daemon.restart(signal.SIGKILL)
        id = seen[0].response.id
        seen += list(client.responses.retrieve(id, stream=True, starting_after=seen[-1].sequence_number))
        assert [event.sequence_number for event in seen] == list(range(len(seen)))
        assert "".join(e.delta for e in seen if e.type == "response.output_text.delta") == first.output_text
        assert client.responses.retrieve(first.id) == first and client.responses.retrieve(answer.id) == answer
        assert client.responses.create(**turn).output_text == answer.output_text
        items = client.responses.input_items.list(first.id)
        assert items.data[0].content[0].text == STORY["input"]


def test_what_goes_on_is_still_its_tenants(tmp_path):
    keys = f"tenants=[{tenant('one', max_running=1)}, {tenant('two')}]"
    with RestartableDaemon(tmp_path, *SETTINGS, keys) as daemon:
        daemon.headers = key_of("one")
        done, running = daemon.post(STORY)["id"], begun(daemon, ENDLESS)
        for how in (signal.SIGKILL, signal.SIGTERM):
            daemon.restart(how)
            goes_on(daemon)
            unknown = daemon.get("resp_" + "0" * 24, headers=key_of("two"))
            assert unknown[0] == 404
            for id in (done, running):
                for rest in ("", "?stream=true", "/input_items"):
                    status, text = daemon.get(id, rest, headers=key_of("two"))
                    assert (status, text.replace(id.encode(), b"resp_" + b"0" * 24)) == unknown
                for method, rest in (("POST", "/cancel"), ("DELETE", "")):
                    assert daemon.ask(method, f"/v1/responses/{id}{rest}", headers=key_of("two"))[0] == 404
            assert daemon.response(done)["status"] == "incomplete"
            assert daemon.response(running)["status"] == "in_progress"
        # A resumed response counts against its tenant's limits: the tenant's next request waits for it, another tenant's does not.
        waiting = daemon.post({**STORY, "background": True})["id"]
        assert daemon.ask("POST", "/v1/responses", STORY, headers=key_of("two"))[0] == 200
        assert daemon.response(waiting)["status"] in ("queued", "in_progress")
        assert daemon.metric("twill_num_requests_waiting") == 1
        assert daemon.ask("POST", f"/v1/responses/{running}/cancel")[0] == 200
        assert daemon.ended(waiting)["status"] == "incomplete"


@pytest.mark.parametrize("before, after", [
    (("model.compute=f32",), ("model.compute=bf16",)),
    ((f"model.chat_template={TEMPLATE}",), ()),
])
def test_nothing_goes_on_with_another_model(tmp_path, before, after):
    common = ("kv.memory=256MiB", "server.drain_timeout=50ms")
    with RestartableDaemon(tmp_path, *common, *before) as daemon:
        done, running = daemon.post(STORY)["id"], begun(daemon, {**ENDLESS, "max_output_tokens": 3000})
        whole, said = daemon.get(done), events_of(daemon, running, 8)
        daemon.end(signal.SIGKILL)
        daemon.settings = [*common, *after]
        daemon.start()
        failed = daemon.ended(running)
        assert (failed["status"], failed["error"]["code"]) == ("failed", "model_changed")
        assert daemon.get(done) == whole
        text = failed["output"][0]["content"][0]["text"]
        assert text.startswith("".join(json.loads(line[6:]).get("delta", "") for line in said))
        for how in (before, after):
            daemon.end()
            daemon.settings = [*common, *how]
            daemon.start()
            assert daemon.response(running) == failed and daemon.get(done) == whole


def test_a_folder_that_cannot_be_used_and_a_damaged_file_are_told(tmp_path):
    with RestartableDaemon(tmp_path, *SETTINGS) as daemon:
        ids = [daemon.post({**STORY, "seed": seed})["id"] for seed in range(2)]
        whole = daemon.get(ids[1])
        (tmp_path / "file").write_text("")
        for folder, words in ((daemon.folder, "in use by another process"), (tmp_path / "file", "cannot be")):
            done = subprocess.run([BIN / "twilld", "--listen", "127.0.0.1:0", "--set", f"responses.folder={folder}",
                                   "--set", "kv.memory=64MiB"], capture_output=True, text=True, timeout=60)
            assert done.returncode == 1
            last = done.stderr.splitlines()[-1]
            assert f"`responses.folder` {folder} " in last and words in last, done.stderr
        # A damaged response is treated as missing, also for its owner, and other responses are not affected.
        file = daemon.folder / f"{ids[0]}.response"
        damaged = bytearray(file.read_bytes())
        damaged[-20] ^= 1
        file.write_bytes(damaged)
        for _ in range(2):
            assert daemon.get(ids[0])[0] == 404
            assert f"the stored response {ids[0]} cannot be read: " in daemon.text_of_log()
            assert daemon.get(ids[1]) == whole
            daemon.restart(signal.SIGKILL)
        assert daemon.ask("DELETE", f"/v1/responses/{ids[0]}")[0] == 200 and not file.exists()


@pytest.mark.parametrize("way", ["sse", "websocket"])
def test_who_comes_back_within_the_grace_loses_nothing_and_who_does_not_is_cancelled(tmp_path, way):
    with RestartableDaemon(tmp_path, *SETTINGS, "responses.grace=2s") as daemon:
        [expected] = undisturbed(daemon, [STORY])
        back, gone = Stream(daemon, way, STORY).start(), Stream(daemon, way, ENDLESS)
        wait_for_events([back], 10)
        back.reset()
        back.thread.join()
        check(daemon, back, expected)
        assert back.breaks == 1
        gone.go_on = lambda: None  # this client does not come back
        gone.start()
        wait_for_events([gone], 10)
        gone.reset()
        left = time.monotonic()
        gone.thread.join()
        status = daemon.response(gone.id)["status"]
        assert status == "in_progress" or time.monotonic() - left > 1.5
        assert daemon.ended(gone.id)["status"] == "cancelled"
        assert 1.5 < time.monotonic() - left < 10
        # A client that still reads keeps the response running when others have left; the grace begins when the last one leaves.
        again = Stream(daemon, "sse", ENDLESS)
        again.go_on = lambda: None
        again.start()
        wait_for_events([again], 10)
        connection = daemon.connection()
        connection.request("GET", f"/v1/responses/{again.id}?stream=true")
        reply = connection.getresponse()
        again.reset()
        end = time.monotonic() + 3
        while time.monotonic() < end:
            assert reply.readline()
        assert daemon.response(again.id)["status"] == "in_progress"
        connection.close()
        reply.close()
        assert daemon.ended(again.id)["status"] == "cancelled"
