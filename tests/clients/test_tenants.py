"""Tenants by their keys: many requests of one do not hold up another, and each has its own limits, models and cached prefixes."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import threading
import time

import pytest

TWILL = pathlib.Path(os.environ["TWILL_BIN"]) / "twill"


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def tenant(name: str, **more) -> str:
    """One entry of --set tenants=[...], whose key is NAME-key."""
    members = {"name": name, "key_sha256": digest(name + "-key"), **more}
    return "{" + ", ".join(f"{k} = {json.dumps(v)}" for k, v in members.items()) + "}"


def key_of(name: str) -> dict:
    return {"Authorization": f"Bearer {name}-key"}


@pytest.fixture(scope="module")
def shared():
    import conftest
    tenants = ", ".join([
        tenant("many", weight=1, max_queued=100), tenant("one"), tenant("poor", tokens_per_minute=300),
        tenant("elsewhere", models=["another-model"]), tenant("narrow", max_running=1, max_queued=1)])
    running = conftest.Daemon("scheduler.max_running=4", "kv.memory=256MiB", "model.name=tiny",
                              f"tenants=[{tenants}]")
    yield running
    alive = running.process.poll() is None
    running.stop()
    assert alive


def test_keys_are_needed_and_known_by_digest(shared):
    assert shared.request("GET", "/v1/models")[0] == 401
    assert shared.request("GET", "/v1/models", headers={"Authorization": f"Bearer {digest('one-key')}"})[0] == 401
    assert shared.request("GET", "/v1/models", headers=key_of("one"))[0] == 200


def test_a_flood_of_one_tenant_does_not_hold_up_another(shared):
    body = {"prompt": "Once upon a time", "max_tokens": 40, "ignore_eos": True}
    done = 0
    lock = threading.Lock()

    def flood(_):
        nonlocal done
        status, reply = shared.post("/v1/completions", body, headers=key_of("many"))
        with lock:
            done += 1
        return status

    with concurrent.futures.ThreadPoolExecutor(60) as pool:
        flooding = [pool.submit(flood, i) for i in range(60)]
        deadline = time.monotonic() + 30
        while shared.metric("twill_num_requests_waiting") < 40:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        status, _ = shared.post("/v1/completions", {**body, "max_tokens": 1}, headers=key_of("one"))
        with lock:
            done_before = done
        assert status == 200
        # With first come, first served this request would have waited for all the others.
        assert done_before < 30, done_before
        assert {f.result() for f in flooding} == {200}


def test_the_limits_of_a_tenant_refuse_at_once_and_say_when_to_come_back(shared):
    body = {"prompt": "a b c d e f g h", "max_tokens": 200, "ignore_eos": True}
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(shared.request, "POST", "/v1/completions", body, headers=key_of("poor"))
        shared.wait_metric("twill_num_requests_running", 1)
        began = time.monotonic()
        status, headers, text = shared.request("POST", "/v1/completions", body, headers=key_of("poor"))
        assert time.monotonic() - began < 5
        assert running.result()[0] == 200
    assert status == 429
    assert 1 <= int(headers["Retry-After"]) <= 60
    error = json.loads(text)["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert "tenants.tokens_per_minute" in error["message"]
    assert shared.post("/v1/completions", {**body, "max_tokens": 1}, headers=key_of("one"))[0] == 200
    # One request runs, one waits, and the third is refused.
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(
            lambda _: shared.request("POST", "/v1/completions", body, headers=key_of("narrow")), range(8)))
    statuses = [reply[0] for reply in replies]
    assert statuses.count(200) >= 2 and statuses.count(429) >= 1, statuses
    for status, headers, text in replies:
        if status == 429:
            assert int(headers["Retry-After"]) >= 1
            assert b"tenants.max_queued" in text


def test_a_tenant_sees_its_own_models_alone(shared):
    assert json.loads(shared.request("GET", "/v1/models", headers=key_of("elsewhere"))[2])["data"] == []
    status, reply = shared.post("/v1/chat/completions", {"model": "tiny", "messages": [
        {"role": "user", "content": "hi"}]}, headers=key_of("elsewhere"))
    assert (status, reply["error"]["code"]) == (404, "model_not_found")


def cached(daemon, name: str, prompt: str, **more) -> int:
    status, reply = daemon.post("/v1/completions", {"prompt": prompt, "max_tokens": 1, **more}, headers=key_of(name))
    assert status == 200, reply
    return reply["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_cached_prefixes_are_a_tenants_own(shared):
    prompt = "The secret of the first tenant is long enough to fill several blocks of the cache. " * 4
    assert cached(shared, "many", prompt) == 0
    assert cached(shared, "one", prompt) == 0
    assert cached(shared, "many", prompt) > 0
    assert cached(shared, "many", prompt, cache_salt="x") == 0
    assert cached(shared, "many", prompt, cache_salt="x") > 0
    assert shared.post("/v1/completions", {"prompt": "x", "cache_salt": ""}, headers=key_of("one"))[0] == 400


def test_a_new_key_opens_a_daemon_that_reads_it_from_a_file(start_daemon, tmp_path):
    printed = subprocess.run([TWILL, "key", "new", "carl"], capture_output=True, text=True, check=True).stdout
    key = re.search(r"^\s+(twk_\S+)$", printed, re.M).group(1)
    line = re.search(r"^\s+(carl sha256:[0-9a-f]{64})$", printed, re.M).group(1)
    assert line.endswith(digest(key))
    assert f'key_sha256 = "{digest(key)}"' in printed
    keys = tmp_path / "keys"
    keys.write_text(f"# keys of the team\n{line}\n")
    daemon = start_daemon(f"server.keys_file={keys}", "kv.memory=64MiB")
    assert daemon.request("GET", "/v1/models")[0] == 401
    assert daemon.request("GET", "/v1/models", headers={"X-Api-Key": key})[0] == 200
    assert key not in daemon.text_of_log()
    refused = subprocess.run([TWILL, "key", "new", "no/name"], capture_output=True, text=True)
    assert refused.returncode == 1 and "must be 1 to 64 letters" in refused.stderr
