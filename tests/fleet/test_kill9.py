"""A worker is killed under load and started again: only streams that it was sending fail."""

import http.client
import signal
import time

import pytest
from load import ASK, WAYS, Load

ROUNDS = 20


@pytest.mark.parametrize(("router", "cut"), WAYS)
def test_a_kill_fails_only_streams_in_flight_there(fleet, router, cut):
    example = fleet.example(router=router, cut=cut)
    kills = []
    with Load(example, lanes=2) as load:
        for number in range(ROUNDS):
            name, worker = list(example.workers.items())[number % 3]
            kills.append((name, time.monotonic()))
            worker.kill()
            worker.begin()
            time.sleep(1.1)  # in this time HAProxy has checked the worker
            example.wait_until_up(name)
    failures = load.failures()
    assert example.ways() == ({"router"} if router else {"w1", "w2", "w3"})
    print(f"{ROUNDS} kills: {load.counts()}, {len(failures)} streams and lanes were cut")
    for one in failures:
        assert one.kind != "reply", "a whole reply is asked for again elsewhere"
        # The worker of a lane is not known, nor that of a stream that has had no event yet. A request may still be sent on a
        # socket for a moment after the worker was killed.
        assert any(one.begun <= at + 0.5 and at <= one.ended and one.worker in (name, "") for name, at in kills), one
        assert one.worker or one.kind == "lane" or not one.text, one
    assert min(load.counts().values()) > ROUNDS


def test_without_the_router_the_workers_answer(fleet):
    """Workers also answer in the seconds before a check finds that the router is gone. A router that is back is used again."""
    example = fleet.example()
    kills = []
    with Load(example) as load:
        for _ in range(3):
            time.sleep(1)
            kills.append(time.monotonic())
            example.processes[example.router].kill()
            example.processes[example.router].wait()
            time.sleep(1)
            example.begin_router()
            before = len(example.log())
            example.wait_until(lambda: " router/router " in example.log()[before:], "the router is not used again")
    failures = load.failures()
    print(f"3 kills of the router: {load.counts()}, {len(failures)} streams were cut")
    for one in failures:
        assert one.kind == "stream" and any(one.begun <= at <= one.ended for at in kills), one
    assert example.ways() == {"router", "w1", "w2", "w3"}


def test_a_worker_that_stands_still_holds_up_only_what_it_has(fleet):
    """A stopped process stands for a machine that was lost without closing connections: HAProxy finds out within seconds, and
    ends its requests or sends them to another worker."""
    example = fleet.example(router="")
    worker = example.workers["w1"]
    with Load(example, lanes=2) as load:
        time.sleep(1)
        connection = load.connection()
        reply = load.post(connection, {**ASK, "max_tokens": 2000, "stream": True}, {"X-Twill-Server": "w1"})
        reply.readline()
        worker.daemon.process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        try:
            cut = b"[DONE]" not in reply.read()
        except (OSError, http.client.HTTPException):
            cut = True
        ended = time.monotonic() - stopped
        time.sleep(1)
        resumed = time.monotonic()
        worker.daemon.process.send_signal(signal.SIGCONT)
        time.sleep(2)
        example.wait_until_up("w1")
    print(f"a stream ended after {ended:.1f} s; {load.counts()}, {len(load.failures())} streams and lanes were cut")
    assert cut and ended < 12
    for one in load.failures():
        assert one.kind != "reply" and one.begun < resumed and one.worker in ("w1", ""), one
    assert max(one.ended - one.begun for one in load.outcomes) < 12
