"""The bytes of KV events, as vLLM's structs and vllm-router read them, and what they say of real requests."""

import json
import time

import pytest

EVENTS = "kv.events=EVENTS"
SMALL = {"max_tokens": 1, "temperature": 0}


def render(worker, body) -> list:
    status, reply = worker.daemon.post("/v1/chat/completions/render", body)
    assert status == 200, reply
    return reply["token_ids"]


def whole_blocks(ids, size: int = 16) -> set:
    return {tuple(ids[:end]) for end in range(size, len(ids) + 1, size)}


def chat(text: str) -> dict:
    return {"messages": [{"role": "user", "content": text * 20}], **SMALL}


@pytest.mark.parametrize("form", ["map", "array"])
def test_blocks_of_prompts_are_told_with_their_ids(fleet, form):
    worker = fleet.worker(EVENTS, f"kv.events_format={form}", "kv.events_topic=kv@me@model", "kv.memory=64MiB")
    router = fleet.subscriber(worker.events, "kv@me", form == "array")
    router.take()
    assert router.cleared >= 1 and not router.media
    wanted = set()
    for text in ["one ", "two ", "Grüße, 世界! "]:
        assert worker.daemon.post("/v1/chat/completions", chat(text))[0] == 200
        wanted |= whole_blocks(render(worker, chat(text)))
    router.take()
    assert router.topic == "kv@me@model"
    assert router.prefixes() == wanted
    # A conversation with a salt, and ids that are computed again, publish no new blocks.
    assert worker.daemon.post("/v1/chat/completions", {**chat("three "), "cache_salt": "mine"})[0] == 200
    assert worker.daemon.post("/v1/chat/completions", chat("one "))[0] == 200
    assert router.take().prefixes() == wanted
    # A subscriber that connects later knows the same blocks.
    late = fleet.subscriber(worker.events, "", form == "array")
    assert late.take(1.5).prefixes() == wanted
    assert router.take().prefixes() == wanted
    assert router.numbers == list(range(router.numbers[0], router.numbers[0] + len(router.numbers)))


def test_evictions_are_told(fleet):
    worker = fleet.worker(EVENTS, "kv.memory=8MiB", "scheduler.max_context_tokens=512")
    router = fleet.subscriber(worker.events)
    for i in range(60):
        assert worker.daemon.post("/v1/chat/completions", chat(f"number {i} "))[0] == 200
    router.take()
    total = worker.daemon.metric("twill_kv_blocks")
    assert 0 < len(router.prefixes()) <= total
    assert len(router.blocks) > total
    # Exactly the blocks that events have published are found in the cache again.
    for i in range(60):
        ids = render(worker, chat(f"number {i} "))
        told = max((len(one) for one in whole_blocks(ids[:-1]) & router.take(0.05).prefixes()), default=0)
        before = worker.cached_tokens()
        assert worker.daemon.post("/v1/chat/completions", chat(f"number {i} "))[0] == 200
        assert worker.cached_tokens() - before == told


def test_tiers_are_told_by_medium(fleet):
    worker = fleet.worker(EVENTS, "kv.memory=8MiB", "kv.host_memory=64MiB", "scheduler.max_context_tokens=512")
    router = fleet.subscriber(worker.events)
    for i in range(60):
        assert worker.daemon.post("/v1/chat/completions", chat(f"number {i} "))[0] == 200
    router.take()
    on_host = router.prefixes("CPU")
    assert len(on_host) > 100
    assert len(on_host) == worker.daemon.metric("twill_kv_host_blocks")


def test_a_model_that_sleeps_has_no_blocks(fleet, scripted_model):
    worker = fleet.worker(f"models.one.path={scripted_model(['a'])}", "models.one.kv.events=EVENTS",
                          "models.one.keep_alive=300ms", f"models.two.path={scripted_model(['b'])}", "models.two.keep_alive=300ms", "kv.memory=64MiB")
    sources = json.loads(worker.daemon.request("GET", "/kv_event_sources")[2])
    assert sources == [{"data_parallel_rank": 0, "endpoint": worker.events, "replay_endpoint": None, "topic": ""}]
    router = fleet.subscriber(worker.events)
    router.take()
    for _ in range(2):  # the model falls asleep and is loaded again
        before = router.cleared
        assert worker.daemon.post("/v1/completions", {"model": "one", "prompt": list(range(3, 43)), **SMALL})[0] == 200
        assert worker.daemon.post("/v1/completions", {"model": "two", "prompt": list(range(3, 43)), **SMALL})[0] == 200
        router.take(0.2)
        assert {len(one) for one in router.blocks.values()} == {16, 32}
        while not json.loads(worker.daemon.request("GET", "/is_sleeping")[2])["is_sleeping"]:
            time.sleep(0.05)
        router.take()
        assert not router.media and router.cleared >= before + 2


def test_what_cannot_be_published_is_refused_by_name(fleet):
    tenants = ",".join(f'{{name="{name}",key_sha256=["{name * 64}"]}}' for name in "ab")
    refused = {
        ("kv.events=tcp://127.0.0.1",): "`kv.events` must be tcp://ADDRESS:PORT",
        ("kv.events=tcp://127.0.0.1:1", "kv.prefix_cache=false"): "`kv.prefix_cache = true`",
        ("kv.events=tcp://127.0.0.1:1", f"tenants=[{tenants}]"): "`kv.share_prefixes = true`",
        ("kv.events=tcp://127.0.0.1:1", "models.one.path=dummy:opt-125m"): "beside `[models.NAME]`",
        ("models.one.path=dummy:null", "models.one.kv.events=tcp://127.0.0.1:1", "models.two.path=dummy:null",
         "models.two.kv.events=tcp://127.0.0.1:1"): "another address for each model",
    }
    for settings, words in refused.items():
        with pytest.raises(AssertionError, match="ended early") as error:
            fleet.worker(*settings)
        assert words in str(error.value)
    taken = fleet.worker(EVENTS, model="dummy:null")
    with pytest.raises(AssertionError, match="ended early") as error:
        fleet.worker(f"kv.events={taken.events}", model="dummy:null")
    assert "`kv.events` must be an address that can be bound" in str(error.value)
