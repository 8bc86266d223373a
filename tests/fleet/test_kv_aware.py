"""vllm-router's kv_aware policy sends prompts to where their beginnings are cached."""

import random
import time

WORDS = "river stone cloud ember maple harbor violet anchor lantern meadow copper willow".split()
TINY = {"max_tokens": 1, "temperature": 0}


def conversation(seed: int) -> list:
    """A conversation that differs from those of other seeds from its first token."""
    pick = random.Random(seed)
    return [{"role": "user", "content": " ".join(pick.choice(WORDS) for _ in range(150))}]


def ask(at, messages):
    status, reply = at.post("/v1/chat/completions", {"messages": messages, **TINY})
    assert status == 200, reply
    return reply


def went_back(fleet, events: bool) -> tuple:
    """Starts each of 20 conversations on one of two workers, and counts how many a router continues on the same worker."""
    workers = [fleet.worker("kv.events=EVENTS", "kv.memory=256MiB") for _ in range(2)]
    options = ("--policy", "kv_aware" if events else "round_robin")
    router = fleet.router(workers, *options, events=events)
    time.sleep(1.5)
    home = {}
    pick = random.Random(7)
    for seed in range(20):
        home[seed] = pick.choice(workers)
        ask(home[seed].daemon, conversation(seed))
    time.sleep(1)
    back = 0
    for seed in home:
        before = {one.url: one.cached_tokens() for one in workers}
        ask(router, conversation(seed))
        gained = [one for one in workers if one.cached_tokens() - before[one.url] > 100]
        back += gained == [home[seed]]
    log = router.text_of_log()
    return back, log


def test_conversations_go_back_to_their_worker(fleet):
    back, log = went_back(fleet, True)
    print(f"{back} of 20 went back")
    assert back >= 19, log[-4000:]


def test_without_events_about_half_do(fleet):
    back, _ = went_back(fleet, False)
    print(f"{back} of 20 went back without events")
    assert 3 <= back <= 17
