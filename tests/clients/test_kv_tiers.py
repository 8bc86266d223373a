"""KV on disk from outside: a daemon that is killed while it writes, and disks that are full, fail or hang.

Whatever the disk does, tokens are those of a daemon without tiers, the daemon keeps running, and requests that need nothing
from the disk stay as fast as before. Most of these tests take minutes and need `run.py --long`. Figures are printed (`pytest -s`).
"""

import http.client
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

import pytest

from conftest import BIN, Daemon

LONG = pytest.mark.skipif(not os.environ.get("TWILL_LONG"), reason="takes minutes: tests/clients/run.py --long")
HERE = pathlib.Path(__file__).resolve().parent
N_PROMPTS, PROMPT_TOKENS, OUTPUT_TOKENS = 10, 150, 6
# KV of four prompts fits on the device at once.
SMALL = ("model.compute=f32", "kv.type=f32", "kv.memory=32MiB", "scheduler.max_context_tokens=256")


def prompt(who: int) -> list:
    return [1000 + (who * 7919 + i * 31 + i // 7 * who) % 20000 for i in range(PROMPT_TOKENS)]


def turn(daemon, who: int) -> tuple:
    """Sends one request; returns its text and how many tokens of its prompt were cached."""
    reply = daemon.complete(prompt(who), max_tokens=OUTPUT_TOKENS, ignore_eos=True)
    cached = (reply["usage"].get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return reply["choices"][0]["text"], cached


@pytest.fixture(scope="module")
def wanted():
    """The answer to each prompt from a daemon without tiers."""
    daemon = Daemon("model.compute=f32", "kv.type=f32", "kv.prefix_cache=false", "scheduler.max_context_tokens=256")
    try:
        return [turn(daemon, who)[0] for who in range(N_PROMPTS)]
    finally:
        daemon.stop()


@pytest.fixture
def bad_disk(tmp_path):
    """A library that makes reads and writes of a disk fail or hang: returns the environment to start a daemon with, and the
    folder in which a test writes how they fail."""
    library = tmp_path / "bad_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, HERE / "bad_disk.c", "-ldl"], check=True)
    state = tmp_path / "state"
    state.mkdir()
    return {"LD_PRELOAD": str(library), "BAD_DISK": str(state)}, state


def tiers(folder, *more: str) -> tuple:
    return (*SMALL, "kv.disk_memory=256MiB", f"kv.disk_dir={folder}", *more)


def attempt(daemon, who: int):
    try:
        turn(daemon, who)
    except (OSError, http.client.HTTPException):
        pass  # the daemon is gone


def kill(daemon):
    daemon.process.send_signal(signal.SIGKILL)
    daemon.process.wait()
    daemon.stop()


@LONG
def test_killed_fifty_times_while_it_writes(tmp_path, wanted):
    random.seed(7)
    turns = cached_tokens = cached_at_first = 0
    for life in range(50):
        daemon = Daemon(*tiers(tmp_path / "kv", "kv.keep=true"))
        first = turn(daemon, life % N_PROMPTS)
        assert first[0] == wanted[life % N_PROMPTS]
        cached_at_first += first[1]
        until = time.monotonic() + random.uniform(0.05, 0.8)
        while time.monotonic() < until:
            who = random.randrange(N_PROMPTS)
            text, cached = turn(daemon, who)
            assert text == wanted[who], f"life {life}, prompt {who}, {cached} cached tokens"
            turns += 1
            cached_tokens += cached
        # Another request is running, so that blocks are being written when the daemon is killed.
        thread = threading.Thread(target=attempt, args=(daemon, random.randrange(N_PROMPTS)))
        thread.start()
        time.sleep(random.uniform(0, 0.1))
        kill(daemon)
        thread.join()
    print(f"\n50 kills, {turns} turns between them, {cached_tokens / max(turns, 1):.0f} cached tokens a turn; first "
          f"turns of a life had {cached_at_first / 50:.0f} of {PROMPT_TOKENS}")
    assert cached_at_first > 0
    # `twill kv purge` refuses while a daemon uses the folder, and empties the folder when none does.
    daemon = Daemon(*tiers(tmp_path / "kv", "kv.keep=true"))
    purge = [BIN / "twill", "kv", "purge", "--dir", tmp_path / "kv"]
    refused = subprocess.run(purge, capture_output=True, text=True)
    assert refused.returncode != 0 and "running daemon" in refused.stderr, refused
    assert turn(daemon, 0)[0] == wanted[0]
    daemon.stop()
    assert subprocess.run(purge, capture_output=True).returncode == 0
    assert not list((tmp_path / "kv").iterdir())


def churn(daemon, wanted, seconds: float, rng_seed: int, out: list):
    """Sends random turns for `seconds`; `out` gets each one's seconds, cached tokens and whether the text was right."""
    rng = random.Random(rng_seed)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        who = rng.randrange(N_PROMPTS)
        began = time.monotonic()
        text, cached = turn(daemon, who)
        out.append((time.monotonic() - began, cached, text == wanted[who]))


def serve_for(daemon, wanted, seconds: float) -> list:
    out: list = []
    threads = [threading.Thread(target=churn, args=(daemon, wanted, seconds, n, out)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out and all(right for _, _, right in out)
    assert daemon.request("GET", "/ready")[0] == 200
    return out


@LONG
def test_a_disk_of_16_mib(tmp_path, wanted, bad_disk):
    small = tmp_path / "small"
    small.mkdir(mode=0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs", small],
                             capture_output=True).returncode == 0
    environment, state = bad_disk
    if not mounted:  # mounting is not allowed here, so the library reports a full disk
        (state / "full").write_text(str(16 << 20))
    daemon = Daemon(*tiers(small, "kv.keep=true"), environment={} if mounted else environment)
    try:
        out = serve_for(daemon, wanted, 15)
        failures = daemon.metric("twill_kv_tier_failures_total")
        print(f"\n{'tmpfs' if mounted else 'ENOSPC'} of 16 MiB: {len(out)} turns, {failures:.0f} writes failed, "
              f"{daemon.metric('twill_kv_disk_hits_total'):.0f} blocks came from disk")
        assert failures > 0
    finally:
        daemon.stop()
        if mounted:
            subprocess.run(["umount", small], check=True)


@LONG
def test_one_percent_of_reads_and_writes_fail(tmp_path, wanted, bad_disk):
    environment, state = bad_disk
    (state / "errors").write_text("1 1")
    daemon = Daemon(*tiers(tmp_path / "kv"), environment=environment)
    out = serve_for(daemon, wanted, 30)
    hits, failures = daemon.metric("twill_kv_disk_hits_total"), daemon.metric("twill_kv_tier_failures_total")
    print(f"\n1 % errors: {len(out)} turns, {hits:.0f} blocks came from disk, {failures:.0f} transfers failed for good")
    assert hits > 0  # one transfer in a hundred fails and is tried again
    # Every read and write fails, so that all prompts are computed again.
    (state / "errors").write_text("100 100")
    serve_for(daemon, wanted, 10)
    assert daemon.metric("twill_kv_tier_failures_total") > failures
    (state / "errors").unlink()
    daemon.stop()


@LONG
def test_a_read_that_hangs_for_a_minute(tmp_path, wanted, bad_disk):
    environment, state = bad_disk
    daemon = Daemon(*tiers(tmp_path / "kv"), environment=environment)
    serve_for(daemon, wanted, 6)
    before = serve_for(daemon, wanted, 10)
    (state / "hang-60").touch()
    began = time.monotonic()
    during = serve_for(daemon, wanted, 50)
    assert not (state / "hang-60").exists(), "no read came"
    after_s = time.monotonic() - began
    mean = [sum(s for s, _, _ in part) / len(part) for part in (before, during)]
    print(f"\na read hangs: {len(before)} turns before ({1e3 * mean[0]:.0f} ms each), {len(during)} in {after_s:.0f} s "
          f"while it hangs ({1e3 * mean[1]:.0f} ms each, {max(s for s, _, _ in during):.2f} s at most)")
    # One request waits for the read that hangs, until its blocks are computed instead; the other requests do not wait.
    assert mean[1] < 2 * mean[0] + 0.1
    assert max(s for s, _, _ in during) < 15
    began = time.monotonic()
    daemon.process.terminate()
    daemon.process.wait(20)  # the daemon ends although the read hangs
    print(f"SIGTERM while it hangs took {time.monotonic() - began:.1f} s")
    assert time.monotonic() - began < 10
    daemon.stop()
