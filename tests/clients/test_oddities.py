"""Unusual actions of real clients, operators and machines, which must cause no failure and no wrong message."""

import gzip
import http.client
import json
import os
import resource
import signal
import subprocess

import openai

from conftest import BIN

TINY = "dummy:opt-125m?layers=1&vocab=1000"
ASKED = {"prompt": "The capital of France is", "max_tokens": 8, "temperature": 0}


def test_comments_of_a_silent_stream_change_nothing_for_the_openai_package(start_daemon):
    daemon = start_daemon("server.keep_alive=1ms")
    client = openai.OpenAI(base_url=daemon.url + "/v1", api_key="none", max_retries=0, timeout=60)
    model = daemon.model()
    messages = [{"role": "user", "content": "Name a colour."}]
    whole = client.completions.create(model=model, **ASKED)
    chunks = list(client.completions.create(model=model, **ASKED, stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].text for c in chunks if c.choices) == whole.choices[0].text
    assert [c.usage is None for c in chunks] == [True] * (len(chunks) - 1) + [False]
    assert all("usage" in c.model_fields_set for c in chunks)
    chat = dict(model=model, messages=messages, max_tokens=8, temperature=0)
    streamed = list(client.chat.completions.create(**chat, stream=True))
    assert ("".join(c.choices[0].delta.content or "" for c in streamed)
            == client.chat.completions.create(**chat).choices[0].message.content)
    assert not any("usage" in c.model_fields_set for c in streamed)
    events = list(client.responses.create(model=model, input="Name a colour.", max_output_tokens=8, temperature=0, stream=True))
    assert events[0].type == "response.created" and events[-1].type in ("response.completed", "response.incomplete")
    for path, body in (("/v1/completions", ASKED), ("/v1/responses", {"input": "Hi", "max_output_tokens": 8})):
        _, _, text = daemon.request("POST", path, {**body, "stream": True})
        assert b": keep-alive\n\n" in text


def test_signals_of_other_daemons_are_ignored(start_daemon):
    daemon = start_daemon(model=TINY)
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE, signal.SIGXFSZ):
        daemon.process.send_signal(number)
        assert daemon.post("/v1/completions", ASKED)[0] == 200, number
    assert daemon.process.poll() is None


def test_fields_of_other_servers_are_honoured_or_named_once_in_the_log(start_daemon):
    daemon = start_daemon()
    for _ in range(2):
        reply = daemon.complete("Once upon a time", n_predict=3, ignore_eos=True, mirostat=2, samplers=["top_k"],
                                options={"num_ctx": 4096})
        assert reply["usage"]["completion_tokens"] == 3
    log = daemon.text_of_log()
    for name in ("mirostat", "samplers", "options"):
        assert log.count(f"a request has `{name}`, which this server ignores") == 1
    assert "`n_predict`" not in log
    long = dict(prompt="one one one one one one", max_tokens=24, ignore_eos=True)
    own = daemon.complete(**long, repetition_penalty=1.8)["choices"][0]["text"]
    assert daemon.complete(**long, repeat_penalty=1.8)["choices"][0]["text"] == own
    assert daemon.complete(**long)["choices"][0]["text"] != own


def test_a_top_p_of_zero_is_greedy(daemon):
    def text(**fields):
        status, reply = daemon.post("/v1/completions", {"prompt": "The capital of France is", "max_tokens": 16, **fields})
        assert status == 200, reply
        return reply["choices"][0]["text"]

    greedy = text(temperature=0)
    for seed in range(3):
        assert text(top_p=0, temperature=1.5, seed=seed) == greedy
        assert text(top_p=0, temperature=1.5, seed=seed, frequency_penalty=0.5) == text(temperature=0, frequency_penalty=0.5)


def test_bodies_that_are_not_as_they_seem_are_refused_by_name(daemon):
    def refusal(body, **headers):
        status, _, text = daemon.request("POST", "/v1/completions", body, headers)
        return status, json.loads(text)["error"]["message"]

    body = json.dumps(ASKED).encode()
    status, message = refusal(gzip.compress(body), **{"Content-Encoding": "gzip"})
    assert (status, "gzip" in message) == (415, True)
    status, message = refusal(b"\xef\xbb\xbf" + body)
    assert (status, "byte order mark" in message) == (400, True)
    status, message = refusal(b'{"prompt": "\\ud83d"}')
    assert (status, "lone surrogate" in message) == (400, True)
    assert daemon.request("POST", "/v1/completions/", body)[0] == 200


def test_status_and_top_sum_the_memory_of_several_models(start_daemon):
    daemon = start_daemon(f"models.a.path={TINY}", f"models.b.path={TINY}", "models.a.keep_alive=0",
                          "models.b.keep_alive=100ms")
    for model in ("a", "b"):
        assert daemon.post("/v1/completions", {**ASKED, "model": model})[0] == 200
    for command in (["status"], ["top", "--once", "--interval", "0.1"]):
        done = subprocess.run([BIN / "twill", *command, "--url", daemon.url], capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        assert " reserved" in done.stdout and "0 B reserved" not in done.stdout, done.stdout


def test_without_descriptors_uploads_and_schemas_say_so_and_work_again_later(start_daemon):
    daemon = start_daemon(model=TINY)
    connection = http.client.HTTPConnection(daemon.host, daemon.port, timeout=30)

    def ask(path, body, content_type):
        connection.request("POST", path, body, {"Content-Type": content_type})
        reply = connection.getresponse()
        return reply.status, reply.read().decode()

    def upload():
        form = ('--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x\r\nContent-Disposition: '
                'form-data; name="file"; filename="a.jsonl"\r\n\r\n{}\r\n--x--\r\n')
        return ask("/v1/files", form, "multipart/form-data; boundary=x")

    def schema(name):
        form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"const": name}}}
        return ask("/v1/completions", json.dumps({**ASKED, "response_format": form}), "application/json")

    assert upload()[0] == 200
    assert schema("first")[0] == 200
    open_now = {int(name) for name in os.listdir(f"/proc/{daemon.process.pid}/fd")}
    before = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    first_free = next(number for number in range(len(open_now) + 1) if number not in open_now)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (first_free, before[1]))
    try:
        status, text = upload()
        assert (status, "no file descriptor left" in text) == (503, True), text
        status, text = schema("second")
        assert (status, "Too many open files" in text) == (503, True), text
    finally:
        resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, before)
    assert upload()[0] == 200
    assert schema("second")[0] == 200
    connection.close()
