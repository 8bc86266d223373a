"""Two seconds after a worker has lost blocks, vllm-router sends it no request because of these blocks."""

import signal
import time

from test_kv_aware import ask, conversation

SOON = 2


def fleet_of_two(fleet, *settings):
    workers = [fleet.worker("kv.events=EVENTS", *settings) for _ in range(2)]
    router = fleet.router(workers, "--policy", "kv_aware", "--disable-circuit-breaker")
    time.sleep(1.5)
    return workers, router


def finds(router, workers, seed: int):
    """Sends a conversation through the router. Returns the worker that had its prompt cached, or None."""
    before = {one.url: one.cached_tokens() for one in workers}
    ask(router, conversation(seed))
    return next((one for one in workers if one.cached_tokens() - before[one.url] > 100), None)


def has(router, worker, seed: int) -> bool:
    """Whether the router sends the conversation to `worker` and it has the prompt cached. (A prompt that is sent to another
    worker is cached there from then on.)"""
    return finds(router, [worker], seed) is worker


def test_a_worker_that_was_killed_and_is_back_has_nothing(fleet):
    workers, router = fleet_of_two(fleet, "kv.memory=256MiB")
    first, second = workers
    ask(first.daemon, conversation(1))
    ask(second.daemon, conversation(2))
    time.sleep(1)
    assert has(router, first, 1)
    first.kill()
    first.begin()
    time.sleep(SOON)
    # Now the second worker computes conversation 1 and keeps it. A stale index would go on sending it to the first worker.
    ask(second.daemon, conversation(1))
    time.sleep(1)
    before = first.cached_tokens()
    assert has(router, second, 1)
    assert first.cached_tokens() == before


def test_what_was_evicted_while_the_router_stood_still_is_forgotten(fleet):
    workers, router = fleet_of_two(fleet, "kv.memory=16MiB", "scheduler.max_context_tokens=1024")
    first, second = workers
    ask(first.daemon, conversation(1))
    time.sleep(1)
    assert has(router, first, 1)
    router.processes[0].send_signal(signal.SIGSTOP)
    for seed in range(100, 130):
        ask(first.daemon, conversation(seed))
    time.sleep(10)
    router.processes[0].send_signal(signal.SIGCONT)
    time.sleep(SOON)
    ask(second.daemon, conversation(1))
    time.sleep(1)
    assert has(router, second, 1)


def test_what_left_the_device_for_host_memory_is_still_credited(fleet):
    workers, router = fleet_of_two(fleet, "kv.memory=16MiB", "kv.host_memory=256MiB", "scheduler.max_context_tokens=1024")
    first, second = workers
    ask(first.daemon, conversation(1))
    for seed in range(100, 130):
        ask(first.daemon, conversation(seed))
    ask(second.daemon, conversation(2))
    time.sleep(1)
    assert has(router, first, 1)


def test_a_router_that_begins_later_knows_what_is_there(fleet):
    workers = [fleet.worker("kv.events=EVENTS", "kv.memory=256MiB") for _ in range(2)]
    for seed in range(6):
        ask(workers[seed % 2].daemon, conversation(seed))
    router = fleet.router(workers, "--policy", "kv_aware")
    time.sleep(SOON)
    for seed in range(6):
        assert finds(router, workers, seed) is workers[seed % 2]
