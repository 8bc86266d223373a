"""Several models under one memory budget: each answers with its own golden tokens while others come and go; names,
limits, faults and sleeping models as a client sees them."""

import json
import os
import pathlib
import random
import re
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from conftest import Daemon

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
FOLDERS = {name: GOLDEN / name for name in
           ("llama-tiny-fp16", "opt-tiny-fp32", "qwen-v1-tiny-fp32", "mistral-tiny-bf16")}
COMMON = ("kv.type=f32", "kv.memory=4MiB", "scheduler.max_running=16")
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
LONG = bool(os.environ.get("TWILL_LONG"))
SECONDS = int(os.environ.get("TWILL_POOL_SECONDS") or (600 if LONG else 6))
# Memory that the daemon may have beside the budget: actors, threads and buffers of models that are awake, requests, and
# memory that the allocator keeps after models were unloaded.
OVERHEAD = 16 * 2**20


def tables(**folders):
    settings = []
    for name, folder in folders.items():
        settings += [f"models.{name}.path={folder}", f"models.{name}.compute=f32"]
    return settings


def states(daemon, **how):
    listed = json.loads(daemon.request("GET", "/v1/models", **how)[2])["data"]
    return {model["id"]: model["state"] for model in listed}


def wait_state(daemon, model, wanted, seconds=20):
    deadline = time.monotonic() + seconds
    while (found := states(daemon)[model]) != wanted:
        assert time.monotonic() < deadline, f"{model} stayed {found}, expected {wanted}"
        time.sleep(0.01)


def golden(name):
    return json.loads((FOLDERS[name] / "golden.json").read_text())["prompts"]


def ask(daemon, model, case, **fields):
    return daemon.post("/v1/completions", {
        "model": model, "prompt": case["ids"], "max_tokens": len(case["greedy_ids"]), "ignore_eos": True,
        "temperature": 0, "repetition_penalty": 1, "return_token_ids": True, **fields})


def tokens(reply):
    return reply["choices"][0]["token_ids"]


def held_bytes(daemon):
    """Memory of the daemon alone, without pages of mapped files, which belong to the page cache."""
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text()
    return sum(int(kib) for kib in re.findall(r"Rss(?:Anon|Shmem):\s+(\d+) kB", status)) * 1024


@pytest.fixture(scope="module")
def needs():
    """The bytes that each model is granted when there is room for all."""
    daemon = Daemon(*COMMON, "device.memory=256MiB", *tables(**FOLDERS))
    try:
        assert set(states(daemon).values()) == {"asleep"}
        for name in FOLDERS:
            status, reply = ask(daemon, name, golden(name)[0])
            assert status == 200, reply
            assert tokens(reply) == golden(name)[0]["greedy_ids"]
        assert set(states(daemon).values()) == {"ready"}
        log = daemon.text_of_log()
        found = {}
        for name in FOLDERS:
            size, unit = re.search(rf"loading model {name} into at most ([0-9.]+) (\w+)", log).groups()
            found[name] = int(float(size) * UNITS[unit])
        return found
    finally:
        daemon.stop()


def test_four_models_under_a_budget_for_two(needs):
    budget = sum(sorted(needs.values())[-2:]) + 2**20
    daemon = Daemon(*COMMON, f"device.memory={budget}", *tables(**FOLDERS))
    prompts = {name: golden(name) for name in FOLDERS}
    over = threading.Event()
    largest, served = [0], dict.fromkeys(FOLDERS, 0)
    asleep = held_bytes(daemon)  # every model sleeps
    held = []
    wrong = []

    def watch():
        while not over.is_set():
            largest[0] = max(largest[0], daemon.metric("twill_device_memory_reserved_bytes"))
            held.append(held_bytes(daemon))
            time.sleep(0.01)

    def client(seed):
        chosen = random.Random(seed)
        while not over.is_set():
            name = chosen.choice(list(FOLDERS))
            case = chosen.choice(prompts[name])
            status, reply = ask(daemon, name, case)
            if status != 200 or tokens(reply) != case["greedy_ids"] or reply["model"] != name:
                wrong.append((name, status, reply))
            served[name] += 1

    try:
        with ThreadPoolExecutor(7) as pool:
            watching = pool.submit(watch)
            clients = [pool.submit(client, seed) for seed in range(6)]
            time.sleep(SECONDS)
            over.set()
            for one in (watching, *clients):
                one.result()
        assert not wrong, wrong[0]
        assert min(served.values()) >= 3, served
        assert 0 < largest[0] <= budget
        loads = daemon.text_of_log().count("loading model")
        # A sleeping model leaves no memory behind: the last sixth of the run has no more than a sixth in the middle of the run.
        parts = [max(held[len(held) * i // 6:len(held) * (i + 1) // 6]) for i in range(6)]
        print(f"{SECONDS} s, {sum(served.values())} requests, {loads} loads, at most {int(largest[0])} of {budget} bytes "
              f"of the budget; resident {asleep} bytes asleep, at most {parts} by sixths of the run")
        assert loads >= 8, loads  # each model was unloaded for another and loaded again
        assert max(held) < asleep + budget + OVERHEAD
        assert parts[5] < parts[2] + 4 * 2**20
        assert daemon.metric("twill_num_requests_running") == 0
        assert daemon.metric("twill_num_requests_waiting") == 0
        assert daemon.metric("twill_request_success_total") == sum(served.values())
    finally:
        daemon.stop()


def test_names_aliases_and_what_a_tenant_may_use(start_daemon):
    import hashlib
    digest = hashlib.sha256(b"key").hexdigest()
    daemon = start_daemon(*COMMON, *tables(first=FOLDERS["llama-tiny-fp16"], second=FOLDERS["opt-tiny-fp32"]),
                          'models.second.aliases=["other"]',
                          f'tenants=[{{name="t", key_sha256="{digest}", models=["second"]}}]')
    key = {"Authorization": "Bearer key"}
    assert states(daemon, headers=key) == {"second": "asleep"}
    case = golden("opt-tiny-fp32")[0]

    def post(model):
        body = {"prompt": case["ids"], "max_tokens": 4, "ignore_eos": True, "temperature": 0,
                "repetition_penalty": 1, "return_token_ids": True}
        return daemon.post("/v1/completions", {**body, **({"model": model} if model else {})}, headers=key)

    for name in (None, "second", "other"):
        status, reply = post(name)
        assert status == 200 and tokens(reply) == case["greedy_ids"][:4], reply
        assert reply["model"] == "second"
    for name in ("first", "third"):
        status, reply = post(name)
        assert (status, reply["error"]["code"]) == (404, "model_not_found")
    # A tokenizer needs no weights in memory.
    status, reply = daemon.post("/tokenize", {"model": "second", "prompt": "Hello"}, headers=key)
    assert status == 200 and reply["count"] > 0


def test_a_model_whose_file_is_missing_says_so_and_hurts_no_other(start_daemon, tmp_path):
    folder = tmp_path / "late"
    daemon = start_daemon(*COMMON, *tables(good=FOLDERS["llama-tiny-fp16"], late=folder),
                          "scheduler.restart_delay=100ms", "scheduler.restart_delay_max=200ms")
    assert states(daemon) == {"good": "asleep", "late": "failed"}
    case = golden("opt-tiny-fp32")[0]
    status, reply = ask(daemon, "late", case)
    assert status == 503 and str(folder) in reply["error"]["message"], reply
    assert reply["error"]["code"] == "model_not_ready"
    mine = golden("llama-tiny-fp16")[0]
    assert tokens(ask(daemon, "good", mine)[1]) == mine["greedy_ids"]
    assert daemon.request("GET", "/ready")[0] == 200
    shutil.copytree(FOLDERS["opt-tiny-fp32"], folder)
    time.sleep(0.3)
    status, reply = ask(daemon, "late", case)
    assert status == 200 and tokens(reply) == case["greedy_ids"], reply


def test_keep_alive_and_pin(start_daemon):
    daemon = start_daemon(*COMMON, *tables(pinned=FOLDERS["llama-tiny-fp16"], short=FOLDERS["opt-tiny-fp32"]),
                          "models.pinned.pin=true", "models.pinned.keep_alive=100ms", "models.short.keep_alive=300ms")
    assert states(daemon) == {"pinned": "ready", "short": "asleep"}
    case = golden("opt-tiny-fp32")[0]
    used = daemon.metric("twill_device_memory_reserved_bytes")
    assert tokens(ask(daemon, "short", case)[1]) == case["greedy_ids"]
    assert states(daemon)["short"] == "ready"
    assert daemon.metric("twill_device_memory_reserved_bytes") > used
    wait_state(daemon, "short", "asleep")
    assert daemon.metric("twill_device_memory_reserved_bytes") == used
    assert states(daemon)["pinned"] == "ready"
    # Counters keep their values when the engine that counted them is gone.
    assert daemon.metric("twill_generation_tokens_total") == len(case["greedy_ids"])
    assert tokens(ask(daemon, "short", case)[1]) == case["greedy_ids"]


def test_a_request_for_a_sleeping_model_keeps_its_deadline_and_may_be_cancelled(needs):
    names = ("llama-tiny-fp16", "opt-tiny-fp32")
    budget = max(needs[name] for name in names) + 2**20
    daemon = Daemon(*COMMON, f"device.memory={budget}", "limits.request_timeout=3s",
                    *tables(**{name: FOLDERS[name] for name in names}))
    try:
        body = {"model": names[0], "prompt": golden(names[0])[0]["ids"], "max_tokens": 100000, "ignore_eos": True,
                "stream": True}
        with daemon.raw() as busy:  # a stream that is not read to its end keeps the first model busy
            text = json.dumps({**body, "max_tokens": 90})
            busy.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: {daemon.host}\r\nContent-Type: application/json\r\n"
                         f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
            case = golden(names[1])[0]
            status, reply = ask(daemon, names[1], case)
            assert status == 200 and tokens(reply) == case["greedy_ids"]
        for _ in range(5):  # these clients leave before their model is loaded
            with daemon.raw() as gone:
                text = json.dumps({**body, "model": names[0], "max_tokens": 4})
                gone.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: {daemon.host}\r\n"
                             f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        daemon.wait_metric("twill_num_requests_waiting", 0)
        daemon.wait_metric("twill_num_requests_running", 0)
        assert tokens(ask(daemon, names[1], case)[1]) == case["greedy_ids"]
    finally:
        daemon.stop()


def test_a_batch_for_a_model_that_cannot_load_stops_no_other_batch(tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(FOLDERS["opt-tiny-fp32"], broken)
    for weights in broken.glob("*.safetensors"):
        os.truncate(weights, weights.stat().st_size // 2)
    daemon = Daemon(*COMMON, "device.memory=256MiB", "batches.max_running=2",
                    *tables(good=FOLDERS["llama-tiny-fp16"], broken=broken))

    def start_batch(model, n):
        lines = "".join(json.dumps({"custom_id": f"l{i}", "method": "POST", "url": "/v1/completions", "body": {
            "model": model, "prompt": golden("llama-tiny-fp16")[0]["ids"], "max_tokens": 4}}) + "\n" for i in range(n))
        form = ('--XX\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--XX\r\nContent-Disposition: '
                f'form-data; name="file"; filename="a.jsonl"\r\n\r\n{lines}\r\n--XX--\r\n')
        status, file = daemon.post("/v1/files", form, headers={"Content-Type": "multipart/form-data; boundary=XX"})
        assert status == 200, file
        status, batch = daemon.post("/v1/batches", {"input_file_id": file["id"], "endpoint": "/v1/completions",
                                                    "completion_window": "24h"})
        assert status == 200, batch
        return batch["id"]

    def batch(name):
        return json.loads(daemon.request("GET", f"/v1/batches/{name}")[2])

    try:
        stuck = [start_batch("broken", 8) for _ in range(3)]
        good = start_batch("good", 20)
        deadline = time.monotonic() + 20
        while (found := batch(good))["status"] != "completed":
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        assert found["request_counts"] == {"total": 20, "completed": 20, "failed": 0}
        assert {batch(name)["status"] for name in stuck} == {"in_progress"}
        assert len(re.findall(r"batch_\w+ waits, at most until its completion window ends: .*broken",
                              daemon.text_of_log())) == 3
    finally:
        daemon.stop()
