"""The fixture `fleet`, which starts daemons and routers for a test."""

import pytest
from events import Subscriber
from example import Example
from routers import KvRouter
from workers import TINY, Worker, clients

scripted_model = clients.scripted_model


@pytest.fixture
def fleet():
    """Starts workers, routers and subscribers, and ends them with the test."""
    made = []

    class Maker:
        @staticmethod
        def worker(*settings, **how):
            made.append(Worker(*settings, **how))
            return made[-1]

        @staticmethod
        def router(*arguments, **how):
            made.append(KvRouter(*arguments, **how))
            return made[-1]

        @staticmethod
        def subscriber(*arguments):
            made.append(Subscriber(*arguments))
            return made[-1]

        @staticmethod
        def example(*settings, router: str = "vllm-router", cut: bool = True, model: str = TINY):
            made.append(Example(Maker.worker, router, cut, *settings, model=model))
            return made[-1]

    yield Maker
    for one in reversed(made):
        one.stop()
