"""A worker is stopped and started again under load, and no request fails. The workers take turns, so that three rounds are
a rolling restart of all workers."""

import signal
import time

import pytest
from load import WAYS, Load

ROUNDS = 20


@pytest.mark.parametrize(("router", "cut"), WAYS)
def test_nothing_fails_while_workers_are_restarted(fleet, router, cut):
    example = fleet.example(router=router, cut=cut)
    with Load(example, lanes=2) as load:
        for number in range(ROUNDS):
            name, worker = list(example.workers.items())[number % 3]
            worker.daemon.process.send_signal(signal.SIGTERM)
            assert worker.daemon.process.wait(30) == 0
            worker.stop()
            worker.begin()
            time.sleep(1.1)  # in this time HAProxy has checked the worker
            example.wait_until_up(name)
    print(f"{ROUNDS} restarts: {load.counts()}; WebSockets were closed {len(load.closings)} times, with {set(load.closings)}",
          *example.refused(), sep="\n")
    assert load.failures() == []
    assert example.ways() == ({"router"} if router else {"w1", "w2", "w3"})
    assert min(load.counts().values()) > ROUNDS
    assert set(load.closings) == {1001}


def test_nothing_fails_while_haproxy_is_reloaded(fleet):
    """Reloads as `systemctl reload haproxy` does: the process that is replaced finishes the requests that it has."""
    example = fleet.example(router="")
    with Load(example, lanes=2) as load:
        for number in range(5):
            time.sleep(1)
            example.processes["haproxy"].send_signal(signal.SIGUSR2)
            example.wait_until(lambda: example.log().count("Loading success") == number + 2, "HAProxy is not loaded again")
        time.sleep(2)
    print(f"5 reloads: {load.counts()}", *example.refused(), sep="\n")
    assert load.failures() == []
