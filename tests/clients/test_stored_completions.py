"""Stored chat completions, completions and /v1/stream over resets, SIGTERM and kill -9: each number has one event with
the same bytes, and the whole equals that of an undisturbed run, also for several choices and models."""

import http.client
import json
import os
import random
import re
import signal
import statistics
import time

import openai
import pytest
from websockets.sync.client import connect

from conftest import Daemon
from stored_streams import OVERLAP, RestartableDaemon, Stream, break_off
from test_models import FOLDERS, tables
from test_stored_restarts import NOTE, SCHEMA, SETTINGS, SUBJECTS
from test_tenants import key_of, tenant

LONG = bool(os.environ.get("TWILL_LONG"))
PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}
KINDS = {
    "chat": [
        {"max_tokens": 64, "n": 2},
        {"max_tokens": 40, "logprobs": True, "top_logprobs": 2, "stream_options": {"include_usage": True}},
        {"max_tokens": 80, "n": 2, "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}}},
        {"max_tokens": 80, "tools": [{"type": "function", "function": {k: v for k, v in NOTE.items() if k != "type"}}],
         "tool_choice": "required", "n": 2},
    ],
    "completions": [
        {"max_tokens": 64, "n": 3, "echo": True},
        {"max_tokens": 40, "logprobs": 2, "n": 2, "return_token_ids": True},
    ],
    "stream": [{"max_tokens": 64, "n": 2}, {"max_tokens": 48, "logprobs": 1}],
}


class EventStream(Stream):
    """A stream of server-sent events with ids; `events` are their data. Continues with the POST and Last-Event-ID, or with GET."""

    def __init__(self, daemon, way, body, by_post=True):
        super().__init__(daemon, way, {**body, "stream": True, "store": True})
        self.by_post = by_post

    def read_sse(self, reply):
        number = None
        for line in reply:
            line = line.decode().rstrip("\n")
            if line.startswith("id: "):
                id, number = line[4:].rsplit(":", 1)
                assert self.id in (None, id)
                self.id, number = id, int(number)
            elif line == "data: [DONE]":
                return
            elif line.startswith("data: "):
                if number is None:
                    code = json.loads(line[6:])["error"]["code"]
                    assert code in ("interrupted", "shutting_down"), line
                    raise EOFError
                self.take_event(number, line[6:])
                number = None
        raise EOFError

    def take_event(self, number, text):
        assert number <= len(self.events), f"event {len(self.events)} is missing before {text}"
        if number == len(self.events):
            self.events.append(text)
        else:
            assert self.events[number] == text, "another event has come under the same number"

    def begin(self):
        self.over_http("POST", PATHS[self.way], self.body)

    def go_on(self):
        after = len(self.events) - 1 - OVERLAP
        if self.by_post and after >= 0:
            return self.over_http("POST", PATHS[self.way], self.body, {"Last-Event-ID": f"{self.id}:{after}"})
        self.over_http("GET", f"{PATHS[self.way]}/{self.id}?stream=true" + (f"&starting_after={after}" if after >= 0 else ""))

    def content(self):
        return [re.sub(r'"id":"(chatcmpl-|cmpl-|call_)[^"]*"|"created":\d+', "", text) for text in self.events]


class SocketStream(Stream):
    """A stream of /v1/stream; `events` are frames, and each socket after the first one resumes behind the last frame."""

    seq = None

    def over_socket(self, message):
        with connect(f"ws://127.0.0.1:{self.daemon.port}/v1/stream", compression=None, open_timeout=60) as to:
            self.socket = to.socket
            to.send(json.dumps({"id": 1, **message}))
            while True:
                frame = json.loads(to.recv(timeout=120))
                if "error" in frame:
                    assert frame["error"]["code"] in ("interrupted", "shutting_down", "model_not_ready"), frame
                    raise EOFError
                self.id = frame.pop("stored", self.id)
                assert self.seq is None or frame["seq"] > self.seq or frame.get("done"), frame
                self.seq = frame["seq"]
                self.events.append(frame)
                if frame.get("done"):
                    return

    def begin(self):
        self.over_socket({"op": "submit", "store": True, **self.body})

    def go_on(self):
        self.over_socket({"op": "resume", "stored": self.id, **({} if self.seq is None else {"after": self.seq})})

    def content(self):
        """The whole content of each choice, however it was cut into frames."""
        told = {}
        for frame in self.events:
            of = told.setdefault(frame.get("choice", 0), {"text": "", "tokens": [], "logprobs": [], "finish": None})
            of["text"] += frame.get("text", "")
            of["tokens"] += frame.get("tokens", [])
            of["logprobs"] += frame.get("logprobs", [])
            of["finish"] = frame.get("finish", of["finish"])
        return told, self.seq, self.events[-1]["usage"]["completion_tokens"]


def stream_of(daemon, way, body, by_post=True):
    return SocketStream(daemon, way, body) if way == "stream" else EventStream(daemon, way, body, by_post)


def asked(i):
    way = list(KINDS)[i % len(KINDS)]
    kinds = KINDS[way]
    about = f"Tell a story about {SUBJECTS[i % len(SUBJECTS)]}."
    prompt = {"prompt": about} if way == "completions" else {"messages": [{"role": "user", "content": about}]}
    return way, {"model": "tiny", **prompt, "temperature": 1.0, "seed": i, **kinds[i // len(KINDS) % len(kinds)]}


def finished(streams):
    for one in streams:
        one.thread.join()
        assert one.error is None, (one.way, one.body, one.error)
    return streams


def disturb(daemon, requests, restarts, resets, dice):
    """Runs requests with faults in their middle and compares them with undisturbed ones. Returns how many were broken off."""
    calm = finished([stream_of(daemon, way, body).start() for way, body in requests])
    streams = [stream_of(daemon, way, body, dice.random() < 0.7).start() for way, body in requests]
    total = sum(len(one.events) for one in calm)
    break_off(daemon, streams, int(total * 0.9), restarts, resets, dice)
    for one, undisturbed in zip(finished(streams), calm):
        assert one.content() == undisturbed.content(), one.body
        again = stream_of(daemon, one.way, one.body, by_post=False)
        again.id = one.id
        again.go_on()
        assert again.content() == undisturbed.content()
        if one.way != "stream":
            assert again.events == one.events
            status, text = daemon.ask("GET", f"{PATHS[one.way]}/{one.id}")
            assert status == 200 and json.loads(text)["id"] == one.id
    return sum(one.breaks > 0 for one in streams)


def test_choices_tools_and_forms_go_on_over_restarts(tmp_path):
    seed = int(os.environ.get("TWILL_SEED", random.randrange(10**6)))
    print("TWILL_SEED =", seed)
    dice = random.Random(seed)
    waves, width, resets = (10, 20, 8) if LONG else (1, 12, 2)
    with RestartableDaemon(tmp_path, *SETTINGS, "responses.grace=60s") as daemon:
        broken = 0
        for n in range(waves):
            requests = [asked(i) for i in range(n * width, (n + 1) * width)]
            broken += disturb(daemon, requests, 2, resets, dice)
            print(f"{(n + 1) * width} streams, {2 * (n + 1)} restarts, {broken} broken off and whole", flush=True)
        assert broken >= waves * width // 4, f"only {broken} were broken off"


def test_streams_of_several_models_go_on(tmp_path):
    """Two models that take turns in one budget."""
    seed = int(os.environ.get("TWILL_SEED", random.randrange(10**6)))
    print("TWILL_SEED =", seed)
    dice = random.Random(seed)
    names = ("llama-tiny-fp16", "mistral-tiny-bf16")
    settings = (*tables(**{name: FOLDERS[name] for name in names}), "kv.type=f32", "kv.memory=4MiB",
                "server.drain_timeout=50ms", "responses.grace=60s")
    with RestartableDaemon(tmp_path, *settings, model=None) as daemon:
        requests = []
        for i in range(12):
            body = {"model": names[i % 2], "temperature": 1.0, "seed": i, "max_tokens": 90, "ignore_eos": True}
            way = "stream" if i % 3 == 0 else "completions"
            prompt = {"tokens" if way == "stream" else "prompt": [5 + i, 9, 20, 7]}
            requests.append((way, {**body, **prompt, "n": 1 + i % 3}))
        for _ in range(5 if LONG else 1):
            disturb(daemon, requests, 2, 2, dice)


def test_the_openai_client_retrieves_and_deletes_completions(tmp_path):
    with RestartableDaemon(tmp_path, *SETTINGS) as daemon, openai.OpenAI(
            base_url=f"http://127.0.0.1:{daemon.port}/v1", api_key="none", max_retries=0, timeout=60) as client:
        asked = dict(model="tiny", messages=[{"role": "user", "content": "Tell a story."}], max_tokens=24, seed=3, n=2)
        made = client.chat.completions.create(**asked, store=True)
        assert client.chat.completions.retrieve(made.id) == made
        streamed = list(client.chat.completions.create(**asked, store=True, stream=True))
        daemon.restart(signal.SIGKILL)
        assert client.chat.completions.retrieve(made.id) == made
        whole = client.chat.completions.retrieve(streamed[0].id)
        for choice in whole.choices:
            deltas = [c.delta.content or "" for chunk in streamed for c in chunk.choices if c.index == choice.index]
            assert "".join(deltas) == choice.message.content == made.choices[choice.index].message.content
        assert client.chat.completions.delete(made.id).deleted
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.retrieve(made.id)
        unstored = client.chat.completions.create(**asked)
        with pytest.raises(openai.NotFoundError):
            client.chat.completions.retrieve(unstored.id)


@pytest.mark.skipif(not LONG, reason="statistics: with --long")
def test_the_time_of_a_404_does_not_tell_whether_another_tenant_has_it():
    dice = random.Random(4)
    daemon = Daemon(f"tenants=[{tenant('one')}, {tenant('two')}]", model="dummy:null?step-us=0")
    try:
        body = {"messages": [{"role": "user", "content": "x" * 2000}], "max_tokens": 50, "store": True}
        ids = {"foreign": [daemon.post(PATHS["chat"], body, headers=key_of("one"))[1]["id"] for _ in range(50)],
               "unknown": [f"chatcmpl-{dice.randrange(16**24):024x}" for _ in range(50)]}
        times, answers = {kind: [] for kind in ids}, set()
        connection = http.client.HTTPConnection(daemon.host, daemon.port, timeout=60)
        for _ in range(4000):
            for kind in dice.sample(list(ids), 2):
                id = dice.choice(ids[kind])
                began = time.perf_counter()
                connection.request("GET", f"{PATHS['chat']}/{id}", headers=key_of("two"))
                reply = connection.getresponse()
                text = reply.read()
                times[kind].append(time.perf_counter() - began)
                answers.add((reply.status, text.replace(id.encode(), b"ID")))
        assert len(answers) == 1 and next(iter(answers))[0] == 404
        foreign, unknown = (statistics.median(times[kind]) * 1e6 for kind in ("foreign", "unknown"))
        print(f"median of a foreign id {foreign:.1f} us, of an unknown one {unknown:.1f} us")
        assert abs(foreign / unknown - 1) < 0.03
    finally:
        daemon.stop()
